// The page of one run: its head, what must not be missed, and panels that follow the run.

import { getJson, runPath } from "./api.js";
import { changeFilter, followChanges } from "./change_stream.js";
import { clientsPanel } from "./clients_panel.js";
import { curvesPanel } from "./curves_panel.js";
import { element } from "./elements.js";
import { jobsPanel } from "./jobs_panel.js";
import { lanesPanel } from "./lanes_panel.js";
import { participationPanel } from "./participation_panel.js";
import { privacyPanel } from "./privacy_panel.js";
import { refusalsPanel } from "./refusals_panel.js";
import { keepFresh } from "./refresh.js";
import { runHead } from "./run_head.js";
import { settingsPanel } from "./settings_panel.js";
import { stalenessPanel } from "./staleness_panel.js";
import { warningBand } from "./warning_band.js";

const ALL_LANES = { title: "What every client was doing", height: 16, opens: true };
const SITE_LANE = {
  title: "What this site was doing", only: { order: "number", first: 0, count: 1 }, height: 1, opens: true,
};

// A panel is {section, show(summary), load()}: `show` draws from the summary, `load` asks the server for more; both
// are optional.
export function openRunPage(main, shell, id) {
  const isSite = Boolean(shell.site);
  const home = isSite ? [] : [["Runs", "#/"]];
  shell.setTrail(...home, [id]);
  const head = runHead(), band = warningBand(id, shell.setAttention);
  const curves = curvesPanel(id), lanes = lanesPanel(id, isSite ? SITE_LANE : ALL_LANES);
  const beside = [stalenessPanel(id), refusalsPanel(id)], assured = [privacyPanel()];
  const ofAll = isSite ? [] : [participationPanel(id), clientsPanel(id)],
    actions = isSite ? [] : [jobsPanel(id), settingsPanel()];
  const panels = [curves, lanes, ...beside, ...ofAll, ...assured, ...actions];
  const sections = (list) => list.map((each) => each.section);
  const left = isSite ? sections(beside) : element("div", { class: "stack" }, sections(beside));
  main.append(head.section, band.section, head.tiles,
    element("div", { class: "grid" }, sections([curves, lanes]), left, sections([...ofAll, ...assured, ...actions])));

  const loops = panels.filter((each) => each.load).map((each) => follow(each));
  const summaryLoop = keepFresh(null, async () => {
    const summary = await getJson(runPath(id));
    shell.setTrail(...home, [summary.name || summary.file]);
    for (const each of [head, band, ...panels]) each.show?.(summary);
  }, (error) => error && (error.status === 404 || head.change() === null ? shell.fail(error) : null));

  Promise.all([summaryLoop, ...loops].map((loop) => loop.first)).then(() => {
    performance.mark("panels drawn");
    main.dataset.drawn = id;
    news.drawnAt(head.change());
  });

  const news = changeFilter(() => {
    summaryLoop.changed();
    for (const loop of loops) loop.changed();
  });
  const unfollow = followChanges([id], { change: news.told, alert: (fired) => shell.alert(fired),
    connected: shell.connected });
  return () => {
    delete main.dataset.drawn;
    shell.setAttention(null);
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
