// Replies that were refused and updates that were filtered, with their reasons.

import { clientAddress } from "./addresses.js";
import { getJson, runPath } from "./api.js";
import { clientLabel, element, panel, replaceIfNew } from "./elements.js";
import { formatCount, formatSeconds } from "./format.js";

const SHOWN = 50;

export function refusalsPanel(id) {
  const section = panel("Refused and filtered", "Replies that broke a rule, and updates that a defence left out.");
  const body = element("div");
  section.append(body);

  async function load() {
    const answer = await getJson(runPath(id, "/refusals", { first: 0, count: SHOWN }));
    replaceIfNew(body, answer, () => {
      if (!answer.total && !answer.filtered.length) return element("p",
        { class: "good", text: "None. Every reply was accepted." });
      return [...refusedPart(id, answer), ...filteredPart(id, answer.filtered)];
    });
  }

  return { section, load };
}

function refusedPart(id, { total, refusals }) {
  if (!total) return [];
  const more = total > refusals.length ? ` The last ${refusals.length} are shown.` : "";
  return [element("p", { class: "chart-line", text: `${formatCount(total)} refused.${more}` }),
    refusalList(id, refusals)];
}

export function refusalList(id, refusals) {
  return element("ul", { class: "events" }, refusals.map((row) => element("li", {},
    element("span", { class: "figure quiet", text: formatSeconds(row.time) }),
    clientLink(id, row),
    element("span", { class: "reason", text: row.reason ?? "no reason was recorded" }),
    element("span", { class: row.is_fault ? "fault" : "quiet",
      text: row.is_fault ? "counted as a fault" : "not its fault" }))));
}

function filteredPart(id, filtered) {
  if (!filtered.length) return [];
  return [element("h3", { text: "Filtered by the strategy's rule" }),
    element("ul", { class: "events" }, filtered.map((row) => element("li", {},
    clientLink(id, row), element("span", { class: "figure", text: `${formatCount(row.count)} updates` }))))];
}

function clientLink(id, row) {
  return element("a", { href: clientAddress(id, row.client), text: clientLabel(row) });
}
