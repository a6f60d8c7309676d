// The page of one client: what it did, how long it took, how stale it was, and what went wrong.

import { runAddress } from "./addresses.js";
import { getJson, isSnapshot, postJson, runPath } from "./api.js";
import { barChart } from "./bar_chart.js";
import { changeFilter, followChanges } from "./change_stream.js";
import { seriesStyle } from "./colours.js";
import { clientLabel, element, emptyState, panel, pill, replaceIfNew } from "./elements.js";
import { AXES, formatBytes, formatCount, formatJoules, formatNumber, formatSeconds, formatShare } from "./format.js";
import { lanesPanel } from "./lanes_panel.js";
import { lineChart } from "./line_chart.js";
import { refusalList } from "./refusals_panel.js";
import { keepFresh } from "./refresh.js";
import { follow } from "./run_page.js";
import { stalenessChart } from "./staleness_panel.js";

export function openClientPage(main, shell, id, client) {
  const isSite = Boolean(shell.site);
  const above = [...(isSite ? [] : [["Runs", "#/"]]), [id, runAddress(id)]];
  shell.setTrail(...above, [`Client ${client}`]);
  const title = element("div", { class: "run-title" }), tiles = element("dl", { class: "tiles" });
  const head = element("header", { class: "run-head" }, title);
  const only = { order: "number", first: isSite ? 0 : client, count: 1 };
  const lanes = lanesPanel(id, { title: "Its tickets over time", only, height: 1, opens: false });
  const panels = [durationsPanel(), timePanel(), agePanel(), faultsPanel(id), ticketsPanel()];
  const grid = element("div", { class: "grid" }, lanes.section, panels.map((each) => each.section));
  main.append(head, tiles, grid);
  let isShown = false;

  const laneLoop = follow(lanes);
  const loop = keepFresh(null, async () => {
    const page = await getJson(runPath(id, `/clients/${client}`));
    shell.setTrail(...above, [clientLabel(page)]);
    replaceIfNew(title, [page.name, page.state, page.since], () => titleLines(id, page, isSite));
    const figures = tilesOf(page);
    replaceIfNew(tiles, figures, () => figures.map(([label, value, note]) => element("div", { class: "tile" },
      element("dt", { text: label }), element("dd", { text: value }),
        note ? element("dd", { class: "quiet", text: note }) : null)));
    for (const each of panels) each.show(page);
    isShown = true;
  }, (error) => error && !isShown && shell.fail(error));

  const news = changeFilter(() => {
    loop.changed();
    laneLoop.changed();
  });
  Promise.all([loop.first, laneLoop.first]).then(() => {
    main.dataset.drawn = id;
    news.drawnAt(-1); // this answer does not say which change it is of
  });
  const unfollow = followChanges([id], { change: news.told, alert: (fired) => shell.alert(fired),
    connected: shell.connected });
  return () => {
    delete main.dataset.drawn;
    unfollow();
    loop.close();
    laneLoop.close();
    lanes.close();
  };
}

function titleLines(id, page, isSite) {
  const since = page.since === null ? "" : ` since ${formatSeconds(page.since)} of the run's clock`;
  return [
    element("div", { class: "title-line" }, element("h1", { text: clientLabel(page) }), pill(page.state),
      isSite || isSnapshot ? null : siteLink(id, page.client)),
    element("p", { class: "quiet", text: `Client ${page.client}, ${page.state}${since}` }),
  ];
}

// A link with which the people of this site see this client, and nothing of the others.
function siteLink(id, client) {
  const box = element("span", { class: "site-link" });
  const button = element("button", { type: "button", text: "Link for this site", onclick: make });
  async function make() {
    try {
      const { url } = await postJson(runPath(id, "/site-link"), { client });
      const field = element("input", { type: "text", readonly: true, value: url,
        "aria-label": "Address for this site" });
      box.replaceChildren(field);
      field.select();
    } catch (error) {
      box.replaceChildren(element("span", { class: "panel-error", text: error.message }));
    }
  }
  box.append(button);
  return box;
}

function tilesOf(page) {
  return [
    ["Tickets", formatCount(page.num_tickets)],
    ["Merged", formatCount(page.merged), `${formatShare(page.merge_share)} of all`],
    ["Weight", formatShare(page.weight_share), "in the model"],
    ["Mean time", formatSeconds(page.mean_duration), "for a ticket"],
    ["Last heard", formatSeconds(page.last_heard), "on the run's clock"],
    ["Lost", formatCount(page.lost), page.refused ? `${formatCount(page.refused)} refused` : null],
    ["Traffic", formatBytes(page.bytes_down + page.bytes_up),
      `↓ ${formatBytes(page.bytes_down)}  ↑ ${formatBytes(page.bytes_up)}`],
    page.energy ? ["Energy", formatJoules(page.energy)] : null,
    page.memory_lost ? ["Memory lost", formatCount(page.memory_lost), "times"] : null,
  ].filter(Boolean);
}

function durationsPanel() {
  const section = panel("How long its tickets took");
  const host = element("div"), nothing = emptyState("No ticket has come back yet");
  section.append(host, nothing);
  const draw = barChart(host);
  return {
    section,
    show({ durations: { edges, counts } }) {
      nothing.hidden = counts.length > 0;
      host.hidden = !counts.length;
      if (!counts.length) return;
      const bars = counts.map((count, place) => ({
        label: `${formatSeconds(edges[place])} to ${formatSeconds(edges[place + 1])}`,
        short: formatSeconds(edges[place]), count,
      }));
      draw({ bars, unit: "tickets", name: "Durations of its tickets" });
    },
  };
}

function timePanel() {
  const section = panel("Durations over time");
  const draw = lineChart(section);
  return {
    section,
    show({ over_time: { time, duration } }) {
      const series = [{ label: "duration in seconds", x: time, y: duration, ...seriesStyle(0) }];
      draw({ series, xAxis: AXES.elapsed, isLog: false, label: "Durations over time, in seconds", height: 210 });
    },
  };
}

function agePanel() {
  const section = panel("Staleness", "Versions of the model that passed while it worked.");
  const body = element("div");
  section.append(body);
  const draw = stalenessChart(body);
  return { section, show: (page) => draw(page.staleness) };
}

function faultsPanel(id) {
  const section = panel("Faults and refusals");
  const body = element("div");
  section.append(body);
  return {
    section,
    show: ({ faults }) => replaceIfNew(body, faults, () =>
      (faults.length ? refusalList(id, faults)
        : element("p", { class: "good", text: "None. Every reply was accepted." }))),
  };
}

function ticketsPanel() {
  const section = panel("Its last tickets");
  section.classList.add("wide");
  const body = element("div", { class: "ticket-box", tabindex: "0", role: "region", "aria-label": "Last tickets" });
  section.append(body);
  const columns = [
    ["Ticket", (row) => formatCount(row.ticket)], ["Sent", (row) => formatSeconds(row.sent)],
    ["Took", (row) => formatSeconds(row.duration)], ["From version", (row) => formatCount(row.version)],
    ["Staleness", (row) => formatCount(row.staleness)],
    ["Weight", (row) => formatNumber(row.outcome === "merged" ? row.weight : null, 3)],
  ];
  const names = ["Outcome", ...columns.map(([name]) => name), "Reason"];
  return {
    section,
    show({ tickets }) {
      replaceIfNew(body, tickets, () => (tickets.length ? element("table", { class: "client-table" },
        element("thead", {}, element("tr", {}, names.map((text) => element("th", { scope: "col", text })))),
        element("tbody", {}, tickets.map((row) => element("tr", {},
          element("td", { class: "cell-name" }, pill(row.outcome)),
          columns.map(([name, format]) => element("td", { class: "figure", "data-label": name, text: format(row) })),
          element("td", { class: "reason", "data-label": row.reason ? "Reason" : "", text: row.reason ?? "" }))))) :
        emptyState("It has been given no ticket yet")));
    },
  };
}
