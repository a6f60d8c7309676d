// One run in the list of runs.

import { runAddress } from "./addresses.js";
import { element, pill } from "./elements.js";
import { formatAgo, formatClock, formatCount, formatNumber, formatShare, UNKNOWN } from "./format.js";
import { sparkline } from "./sparkline.js";

export function runRow(run, isTicked, tick) {
  const address = runAddress(run.id);
  const isReadable = run.state !== "unreadable";
  const box = element("input", {
    type: "checkbox", checked: isTicked, disabled: !isReadable || !tick,
      "aria-label": `Compare ${run.name}, ${run.file}`,
    onchange: () => tick(run.id, box.checked),
  });
  const age = element("span", { text: formatAgo(run.changed), title: formatClock(run.changed) });
  const name = isReadable ? element("a", { href: address, text: run.name || run.file })
    : element("span", { text: run.name });
  const path = run.id.replace(/~([0-9A-F]{2})/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
  const row = element("tr", { "data-id": run.id, "data-state": run.state },
    cell("tick", "", box),
    cell("name", "", name, element("span", { class: "quiet path", text: path }), reasonLine(run)),
    cell("state", "", pill(run.state), warningMark(run)),
    cell("progress", "Progress", progressBar(run.progress)),
    cell("loss", "Loss", sparkline(run.spark), element("span", { class: "figure", text: formatNumber(run.objective) })),
    cell("strategy", "Strategy", element("span", { text: run.strategy ?? UNKNOWN }), kindNote(run)),
    cell("figure", "Rounds", formatCount(run.rounds)),
    cell("figure", "Clients", formatCount(run.num_clients)),
    cell("figure", "Changed", age));
  row.refreshAge = () => { age.textContent = formatAgo(run.changed); };
  return row;
}

export function progressBar(share) {
  if (share === null || share === undefined) return element("span", { class: "quiet", text: "no limit set" });
  const filled = element("span", { class: "progress-filled" });
  filled.style.width = `${Math.min(100, 100 * share)}%`;
  const bar = element("span", {
    class: "progress", role: "progressbar", "aria-label": "Progress", "aria-valuenow": Math.round(100 * share),
    "aria-valuemin": 0, "aria-valuemax": 100,
  }, filled);
  return element("span", { class: "progress-box" }, bar, element("span",
    { class: "figure", text: formatShare(Math.floor(100 * share) / 100) }));
}

function cell(kind, label, ...children) {
  return element("td", { class: `cell-${kind}`, "data-label": label }, ...children);
}

function reasonLine(run) {
  const isWrong = ["unreadable", "diverged", "starved"].includes(run.state);
  return isWrong && run.reason ? element("span", { class: "quiet reason", text: run.reason }) : null;
}

function warningMark(run) {
  return run.warnings ? element("span", { class: "warning-mark",
    text: `${run.warnings} ${run.warnings === 1 ? "warning" : "warnings"}` }) : null;
}

function kindNote(run) {
  const who = run.holder?.pid ? `, process ${run.holder.pid}` : "";
  return run.kind ? element("span", { class: "quiet", text: `${run.kind}${who}`, title: run.holder?.command || null })
    : null;
}
