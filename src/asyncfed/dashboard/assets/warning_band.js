// What somebody who opens a run must not miss: a band over the whole page, alarms first. An alarm is in the bar at the
// top as well, which stays when the page is scrolled.

import { clientAddress } from "./addresses.js";
import { element, replaceIfNew } from "./elements.js";
import { formatSeconds } from "./format.js";

const FIRST_SHOWN = 4;
const ORDER = { alarm: 0, warning: 1, note: 2 };
const TITLES = { alarm: "Needs attention", warning: "Look at this", note: "Note" };

export function warningBand(id, setAttention) {
  const section = element("section", { class: "band", role: "alert", "aria-label": "Warnings", hidden: true });
  let isOpen = false, shown = null;

  function show(summary) {
    shown = summary;
    const warnings = [...summary.warnings].sort((one, other) => ORDER[one.level] - ORDER[other.level]);
    section.hidden = warnings.length === 0;
    setAttention(warnings[0]?.level === "alarm" ? titleOf(warnings) : null);
    if (section.hidden) return;
    section.dataset.level = warnings[0].level;
    replaceIfNew(section, [warnings, isOpen], () => {
      const visible = isOpen ? warnings : warnings.slice(0, FIRST_SHOWN);
      const rest = warnings.length - FIRST_SHOWN;
      const button = element("button", {
        type: "button", class: "plain", text: isOpen ? "Show fewer" : `Show ${rest} more`,
        onclick: () => { isOpen = !isOpen; show(shown); },
      });
      return [
        element("h2", { text: titleOf(warnings) }),
        element("ul", {}, visible.map((warning) => line(warning, id))),
        ...(rest > 0 ? [button] : []),
      ];
    });
  }

  return { section, show };
}

function titleOf(warnings) {
  const level = warnings[0].level, kinds = {};
  for (const { kind } of warnings.filter((each) => each.level !== "note")) kinds[kind] = (kinds[kind] ?? 0) + 1;
  const counted = Object.entries(kinds).map(([kind, count]) => (count > 1 ? `${count} ${kind}` : kind)).join(", ");
  return counted ? `${TITLES[level]}: ${counted}` : TITLES[level];
}

function line(warning, id) {
  const since = warning.since === null ? null : element("span",
    { class: "quiet", text: `since ${formatSeconds(warning.since)}` });
  const link = warning.client === null ? null :
    element("a", { href: clientAddress(id, warning.client), text: "Show client" });
  return element("li", { "data-level": warning.level }, element("span", { text: warning.text }), since, link);
}
