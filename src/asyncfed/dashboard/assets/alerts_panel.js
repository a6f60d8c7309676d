// Alerts: the rules, and what they found. A new one is shown at once.

import { runAddress } from "./addresses.js";
import { getJson } from "./api.js";
import { element } from "./elements.js";
import { formatAgo } from "./format.js";

const MOST_SHOWN = 50;

export function startAlerts(button, box) {
  let fired = [], rules = [];

  async function load() {
    try {
      const answer = await getJson("/api/alerts");
      [fired, rules] = [answer.fired, answer.rules];
    } catch {
      button.hidden = fired.length === 0; // a server, or a saved page, without rules
    }
    draw();
  }

  function draw() {
    button.textContent = fired.length ? `Alerts ${fired.length}` : "Alerts";
    button.dataset.fired = String(fired.length > 0);
    const latest = [...fired].sort((one, other) => (other.time ?? 0) - (one.time ?? 0)).slice(0, MOST_SHOWN);
    const list = latest.map((alert) => element("li", {},
      element("span", { class: "alert-text", text: alert.text }),
      element("span", { class: "quiet" },
        alert.run ? element("a", { href: runAddress(alert.run), text: alert.run }) : "",
        ` ${formatAgo(alert.time)}`)));
    const described = rules.map((rule) => element("li", { class: "quiet", text: describeRule(rule) }));
    box.replaceChildren(
      element("h2", { text: "Alerts" }),
      list.length ? element("ul", { class: "alert-list" }, list)
        : element("p", { class: "quiet", text: "Nothing to report." }),
      described.length ? element("details", {}, element("summary", { text: `${described.length} rules` }),
        element("ul", {}, described)) : "");
  }

  button.addEventListener("click", () => {
    box.hidden = !box.hidden;
    button.setAttribute("aria-expanded", String(!box.hidden));
    if (!box.hidden) load();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || box.hidden) return;
    box.hidden = true;
    button.setAttribute("aria-expanded", "false");
    button.focus();
  });
  load();

  return (alert) => {
    fired = [alert, ...fired];
    button.hidden = false;
    draw();
    showNotice(alert);
  };
}

function describeRule(rule) {
  if (typeof rule === "string") return rule;
  return rule.text ?? Object.entries(rule).map(([name, value]) => `${name}: ${value}`).join(", ");
}

function showNotice(alert) {
  const notice = element("div", { class: "notice", role: "alert" }, element("b", { text: "Alert" }),
    element("span", { text: alert.text }),
    element("button", { type: "button", class: "plain", text: "Close", onclick: () => notice.remove() }));
  document.body.append(notice);
  setTimeout(() => notice.remove(), 12_000);
}
