// The head of a run's page: what it is, how far it is, and its main figures.

import { element, pill, replaceIfNew } from "./elements.js";
import { formatBytes, formatCount, formatJoules, formatNumber, formatSeconds, metricName } from "./format.js";
import { progressBar } from "./run_row.js";

export function runHead() {
  const title = element("div", { class: "run-title" }), tiles = element("dl", { class: "tiles" });
  const section = element("header", { class: "run-head" }, title);
  let summary = null;

  function show(next) {
    summary = next;
    const { name, file, state, reason, progress, holder } = summary;
    replaceIfNew(title, [name, file, state, reason, progress, holder], () => [
      element("div", { class: "title-line" }, element("h1", { text: name || file }), pill(state),
        element("div", { class: "title-progress" }, progressBar(progress))),
      element("p", { class: "quiet", text: describeRun(summary) }),
      state !== "running" && reason ? element("p", { class: "quiet", text: `Ended: ${reason}.` }) : "",
    ].filter(Boolean));
    const figures = tilesOf(summary);
    replaceIfNew(tiles, figures, () => figures.map(([label, value, note]) =>
      element("div", { class: "tile" }, element("dt", { text: label }), element("dd", { text: value }),
        note ? element("dd", { class: "quiet", text: note }) : null)));
  }

  return { section, tiles, show, change: () => summary?.change ?? null };
}

function describeRun({ strategy_label, kind, seed, file, holder }) {
  const writer = holder?.pid ? `written by process ${holder.pid}${holder.host ? ` on ${holder.host}` : ""}` : null;
  const parts = [strategy_label, kind, seed === null || seed === undefined ? null : `seed ${seed}`, file, writer];
  return parts.filter(Boolean).join("  ·  ");
}

function tilesOf(summary) {
  const { totals, budget, metrics } = summary;
  const main = "objective" in metrics ? "objective" : Object.keys(metrics)[0];
  const accuracy = ["test_accuracy", "validation_accuracy", "accuracy"].find((name) => name in metrics);
  const limit = (value, format) => (value ? `of ${format(value)}` : null);
  const clock = summary.clock === "virtual" ? "simulated" : "on the clock";
  const lostParts = [[totals.lost, "lost"], [totals.dropped, "dropped"], [totals.cancelled, "cancelled"],
    [totals.refused, "refused"]]
    .filter(([count]) => count).map(([count, word]) => `${formatCount(count)} ${word}`);
  return [
    main ? [main === "objective" ? "Loss" : metricName(main), formatNumber(metrics[main])] : null,
    accuracy ? [metricName(accuracy), formatNumber(metrics[accuracy])] : null,
    ["Rounds", formatCount(summary.rounds), limit(budget.rounds, formatCount)],
    ["Updates merged", formatCount(summary.updates), lostParts.join(", ") || limit(budget.updates, formatCount)],
    ["Time", formatSeconds(summary.elapsed ?? summary.now), limit(budget.elapsed, formatSeconds) ?? clock],
    summary.num_clients === null ? null : ["Clients", formatCount(summary.num_clients),
      summary.in_flight ? `${formatCount(summary.in_flight)} tickets out` : null],
    totals.bytes_down === null ? null : ["Traffic", formatBytes(totals.bytes_down + totals.bytes_up),
      `↓ ${formatBytes(totals.bytes_down)}  ↑ ${formatBytes(totals.bytes_up)}`],
    totals.energy ? ["Energy", formatJoules(totals.energy)] : null,
    summary.memory_lost ? ["Client memory lost", formatCount(summary.memory_lost), "times; they began anew"] : null,
  ].filter(Boolean);
}
