// What the server can make of a run: another strategy on the same durations, a certificate, a report page, an export.

import { getJson, isSnapshot, postJson, runPath } from "./api.js";
import { element, panel } from "./elements.js";

export const WHAT_IF_STRATEGIES = ["afl", "afl_mixing", "fedasync", "fedavg", "fedbuff", "ringmaster", "fedcompass",
  "sync"];
const FORMATS = [
  ["csv", "evaluations, CSV"], ["parquet", "evaluations, Parquet"], ["rounds.csv", "rounds, CSV"],
  ["events.csv", "events, CSV"], ["events.parquet", "events, Parquet"], ["model", "the model, JSON"],
];
const PAUSE = 700;

export function jobsPanel(id) {
  const section = panel("Do more with this run");
  const strategies = element("select", { "aria-label": "Strategy" },
    WHAT_IF_STRATEGIES.map((name) => element("option", { value: name, text: name })));
  const formats = element("select", { "aria-label": "Format" },
    FORMATS.map(([value, text]) => element("option", { value, text })));
  section.classList.add("wide");
  section.append(element("div", { class: "jobs" },
    jobRow("What if another strategy had run?", "Simulated on the durations that were recorded.", "Try it", strategies,
      () => postJson(runPath(id, "/what-if"), { strategy: strategies.value })),
    jobRow("What is guaranteed?", "Which assumptions of the theory hold, and its bounds beside the run.", "Certify", null,
      () => postJson(runPath(id, "/certificate"), {})),
    jobRow("Report", "One page with figures and tables, to keep or to send.", "Make report", null,
      () => postJson(runPath(id, "/report"), {})),
    jobRow("Export", "Tables for a spreadsheet or a notebook, or the model.", "Export", formats,
      () => postJson(runPath(id, "/export"), { format: formats.value }))));
  section.hidden = isSnapshot;
  return { section };
}

function jobRow(title, text, action, field, start) {
  const outcome = element("p", { class: "job-outcome", role: "status" });
  const button = element("button", { type: "button", text: action, onclick: run });

  async function run() {
    button.disabled = true;
    try {
      outcome.replaceChildren("Starting");
      const { job } = await start();
      await watch(job, outcome);
    } catch (error) {
      outcome.replaceChildren(element("span", { class: "panel-error", text: error.message }));
    }
    button.disabled = false;
  }

  return element("div", { class: "job" },
    element("div", {}, element("h3", { text: title }), element("p", { class: "quiet", text })),
    element("div", { class: "tools" }, field, button), outcome);
}

async function watch(job, outcome) {
  for (;;) {
    const { state, progress, result, error } = await getJson(`/api/jobs/${encodeURIComponent(job)}`);
    if (error) throw new Error(error);
    if (result?.url) {
      outcome.replaceChildren(element("a", { href: result.url, target: "_blank", rel: "noopener",
        text: "Open the result" }));
      return;
    }
    outcome.replaceChildren(progress ? `${state}, ${Math.round(100 * progress)} %` : state);
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}
