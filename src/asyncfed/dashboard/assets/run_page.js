// The page of one run: its head, what must not be missed, and panels that follow the run.

import { getJson, runPath } from "./api.js";
import { followChanges } from "./change_stream.js";
import { certificatePanel, privacyPanel } from "./assurance_panels.js";
import { clientsPanel } from "./clients_panel.js";
import { curvesPanel } from "./curves_panel.js";
import { element } from "./elements.js";
import { jobsPanel } from "./jobs_panel.js";
import { lanesPanel } from "./lanes_panel.js";
import { participationPanel } from "./participation_panel.js";
import { refusalsPanel } from "./refusals_panel.js";
import { keepFresh } from "./refresh.js";
import { runHead } from "./run_head.js";
import { settingsPanel } from "./settings_panel.js";
import { stalenessPanel } from "./staleness_panel.js";
import { warningBand } from "./warning_band.js";

// A panel is {section, show(summary), load()}: `show` draws from the summary, `load` asks the server for more; both
// are optional.
export function openRunPage(main, shell, id) {
  const isSite = Boolean(shell.site);
  const home = isSite ? [] : [["Runs", "#/"]];
  shell.setTrail(...home, [id]);
  const head = runHead(), band = warningBand(id);
  const panels = [
    curvesPanel(id), lanesPanel(id, { height: 16 }), stalenessPanel(id),
    ...(isSite ? [] : [participationPanel(id), clientsPanel(id)]),
    refusalsPanel(id), certificatePanel(), privacyPanel(),
    ...(isSite ? [] : [jobsPanel(id), settingsPanel()]),
  ];
  const grid = element("div", { class: "grid" }, panels.map((each) => each.section));
  main.append(head.section, band.section, grid);

  const loops = panels.filter((each) => each.load).map((each) => follow(each));
  const summaryLoop = keepFresh(head.section, async () => {
    const summary = await getJson(runPath(id));
    shell.setTrail(...home, [summary.name || summary.file]);
    for (const each of [head, band, ...panels]) each.show?.(summary);
  }, (error) => error && (error.status === 404 || !head.isShown() ? shell.fail(error) : null));

  const changed = () => {
    summaryLoop.changed();
    for (const loop of loops) loop.changed();
  };
  const unfollow = followChanges([id], {
    change: changed, alert: (fired) => shell.alert(fired),
    connected: (isConnected) => {
      shell.connected(isConnected);
      if (isConnected && head.isShown()) changed();
    },
  });
  return () => {
    unfollow();
    for (const loop of [summaryLoop, ...loops]) loop.close();
    for (const each of panels) each.close?.();
  };
}

export function follow(each) {
  const complaint = element("p", { class: "panel-error", role: "status", hidden: true });
  each.section.append(complaint);
  return keepFresh(each.section, () => each.load(), (error) => {
    complaint.hidden = error === null;
    complaint.textContent = error === null ? "" : `This could not be read: ${error.message}`;
    each.section.dataset.loaded = "true";
  });
}
