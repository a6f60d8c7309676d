// Whose updates made the model: each client's share of merges and of weight, the most and the least.

import { clientAddress } from "./addresses.js";
import { getJson, runPath } from "./api.js";
import { clientLabel, element, emptyState, panel, replaceIfNew } from "./elements.js";
import { formatCount, formatNumber, formatShare } from "./format.js";

const EACH_END = 8;

export function participationPanel(id) {
  const section = panel("Who takes part", "Each client's share of merged updates, and of the weight they had.");
  const line = element("p", { class: "chart-line" }), body = element("div", { class: "shares" });
  const key = element("ul", { class: "legend" },
    element("li", {}, element("span", { class: "share-key merges" }), element("span", { text: "updates" })),
    element("li", {}, element("span", { class: "share-key weight" }), element("span", { text: "weight" })),
    element("li", {}, element("span", { class: "share-key even" }), element("span", { text: "an even share" })));
  section.append(line, body, key);

  function show({ participation, num_clients }) {
    const { jain, never } = participation;
    const evenness = jain === null ? "Nothing was merged yet." : `Evenness ${formatNumber(jain, 3)} (1: all alike).`;
    const left = never ? ` ${formatCount(never)} of ${formatCount(num_clients)} clients have no merged update.` : "";
    line.textContent = evenness + left;
    line.dataset.level = participation.left_out.length ? "alarm" : "";
  }

  async function load() {
    const top = await getJson(runPath(id, "/clients", { order: "merged", first: 0, count: 2 * EACH_END }));
    let most = top.clients, least = [];
    if (top.total > 2 * EACH_END) {
      most = top.clients.slice(0, EACH_END);
      const first = top.total - EACH_END;
      least = (await getJson(runPath(id, "/clients", { order: "merged", first, count: EACH_END }))).clients;
    }
    const between = top.total - most.length - least.length;
    const shares = [...most, ...least].map((row) => [row.client, row.name, row.merge_share, row.weight_share]);
    replaceIfNew(body, [shares, between], () => {
      if (!most.some((row) => row.merged)) return emptyState("Nothing was merged yet",
        "Shares begin with the first merged update.");
      const values = [...most, ...least].flatMap((row) => [row.merge_share, row.weight_share]);
      const largest = Math.max(1 / top.total, ...values);
      const rows = (list) => list.map((row) => shareRow(id, row, largest, 1 / top.total));
      const gap = between ? [element("p", { class: "quiet gap", text: `${formatCount(between)} clients in between` })]
        : [];
      return [...rows(most), ...gap, ...rows(least)];
    });
  }

  return { section, show, load };
}

function shareRow(id, row, largest, even) {
  const bar = (kind, share) => {
    const made = element("span", { class: `share ${kind}` });
    made.style.width = `${(100 * share) / largest}%`;
    return made;
  };
  const mark = element("span", { class: "even-mark" });
  mark.style.left = `${(100 * even) / largest}%`;
  const text = `${formatShare(row.merge_share)} of updates, ${formatShare(row.weight_share)} of weight`;
  return element("a", { class: "share-row", href: clientAddress(id, row.client), title: text,
    "data-none": row.merged === 0 },
    element("span", { class: "share-name", text: clientLabel(row) }),
    element("span", { class: "share-bars" }, bar("merges", row.merge_share), bar("weight", row.weight_share), mark),
    element("span", { class: "figure", text: row.merged === 0 ? "none" : formatShare(row.merge_share) }));
}
