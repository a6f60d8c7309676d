// The clients in a table: found by name, in the order somebody looks for, a page at a time.

import { clientAddress } from "./addresses.js";
import { getJson, runPath } from "./api.js";
import { clientLabel, element, emptyState, panel, pill, replaceIfNew, select } from "./elements.js";
import { formatBytes, formatCount, formatJoules, formatSeconds, formatShare } from "./format.js";

const PAGE = matchMedia("(max-width: 860px)").matches ? 8 : 20;

export const CLIENT_ORDERS = [
  ["silent", "Silent first"], ["slowest", "Slowest first"], ["merged", "Most merged first"],
  ["weight", "Most weight first"], ["refused", "Most refused first"], ["number", "By number"],
];

const COLUMNS = [
  ["Tickets", (row) => formatCount(row.tickets)], ["Merged", (row) => formatCount(row.merged)],
  ["Lost", (row) => formatCount(row.lost)], ["Refused", (row) => formatCount(row.refused)],
  ["Mean time", (row) => formatSeconds(row.mean_duration)], ["Last heard", (row) => formatSeconds(row.last_heard)],
  ["Weight", (row) => formatShare(row.weight_share)], ["Down", (row) => formatBytes(row.bytes_down)],
  ["Up", (row) => formatBytes(row.bytes_up)], ["Energy", (row) => formatJoules(row.energy)],
];

export function clientsPanel(id) {
  const section = panel("Clients");
  section.classList.add("wide");
  let order = "silent", first = 0, find = "";
  const search = element("input", {
    type: "search", placeholder: "Find a client", "aria-label": "Find a client by name", autocomplete: "off",
    oninput: () => { [find, first] = [search.value, 0]; again(); },
  });
  const orders = select("Order", CLIENT_ORDERS, order, (value) => { [order, first] = [value, 0]; again(); });
  section.querySelector(".panel-head").append(element("div", { class: "tools" }, search, orders));
  const table = element("div"), pager = element("div", { class: "pager" });
  section.append(table, pager);
  const again = () => load().catch(() => {});

  async function load() {
    const asked = `${order} ${first} ${find}`;
    const answer = await getJson(runPath(id, "/clients", { order, first, count: PAGE, find }));
    if (asked !== `${order} ${first} ${find}`) return; // somebody has chosen something else meanwhile
    replaceIfNew(table, answer.clients, () => (answer.clients.length ? clientTable(id, answer.clients) :
      emptyState("No client matches", "Change the words in the field above.")));
    replaceIfNew(pager, [first, answer.total], () => pagerOf(answer.total));
  }

  function pagerOf(total) {
    const move = (step) => () => { first = Math.max(0, first + step); again(); };
    const last = Math.min(first + PAGE, total), range = `${formatCount(first + 1)} to ${formatCount(last)}`;
    return total <= PAGE ? [] : [
      element("button", { type: "button", text: "Previous", disabled: first === 0, onclick: move(-PAGE) }),
      element("span", { class: "quiet figure", text: `${range} of ${formatCount(total)}` }),
      element("button", { type: "button", text: "Next", disabled: last >= total, onclick: move(PAGE) }),
    ];
  }

  return { section, load };
}

function clientTable(id, rows) {
  const columns = COLUMNS.filter(([name], place) => place < 5 || name !== "Energy" || rows.some((row) => row.energy));
  const head = ["Client", "State", ...columns.map(([name]) => name)];
  return element("table", { class: "client-table" },
    element("thead", {}, element("tr", {}, head.map((text) => element("th", { scope: "col", text })))),
    element("tbody", {}, rows.map((row) => element("tr", {},
      element("td", { class: "cell-name" }, element("a", { href: clientAddress(id, row.client),
        text: clientLabel(row) })),
      element("td", { class: "cell-state" }, pill(row.state)),
      columns.map(([name, format]) => element("td", { class: "figure", "data-label": name, text: format(row) }))))));
}
