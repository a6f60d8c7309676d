// Several runs against rounds, time, bytes and energy at once.

import { runAddress } from "./addresses.js";
import { getJson, runPath } from "./api.js";
import { followChanges } from "./change_stream.js";
import { seriesStyle } from "./colours.js";
import { choice, element, emptyState, panel, replaceIfNew, select } from "./elements.js";
import { AXES, formatNumber, metricName } from "./format.js";
import { legend, lineChart } from "./line_chart.js";
import { keepFresh } from "./refresh.js";

export function openComparePage(main, shell, ids) {
  shell.setTrail(["Runs", "#/"], ["Compare"]);
  if (!ids.length) {
    main.append(emptyState("No runs to compare", "Tick two or more in the list of runs."));
    return () => {};
  }
  let metric = "objective", isLog = true;
  const metrics = element("div"), key = element("div", { class: "compare-key" });
  const scaleChoice = choice("Scale of values", [["log", "Log"], ["linear", "Linear"]], "log", (value) => {
    isLog = value === "log";
    fresh.changed();
  });
  main.append(element("div", { class: "page-head" }, element("h1", { text: `Compare ${ids.length} runs` }),
    element("div", { class: "tools" }, metrics, scaleChoice)), key);
  const grid = element("div", { class: "grid" });
  main.append(grid);
  const charts = Object.entries(AXES).map(([axis, described]) => {
    const section = panel(`Against ${described.label}`);
    grid.append(section);
    return [axis, described, lineChart(section)];
  });

  async function load() {
    const runs = ids.map(encodeURIComponent).join(",");
    const answers = await Promise.all(charts.map(([axis]) =>
      getJson(`/api/compare?runs=${runs}&axis=${axis}&metric=${encodeURIComponent(metric)}`)));
    answers.forEach((answer, place) => {
      const [, xAxis, show] = charts[place];
      const series = answer.runs.map((run, index) => ({ label: run.label, x: run.x, y: run.y, ...seriesStyle(index) }));
      show({ series, xAxis, isLog, label: `${metricName(metric)} against ${xAxis.label}` });
      if (place === 0) drawKey(answer.runs, series);
    });
  }

  function drawKey(runs, series) {
    replaceIfNew(key, [runs.map((run) => [run.label, run.y.at(-1)]), metric], () => {
      const list = legend(series);
      [...list.children].forEach((row, index) => {
        const link = element("a", { href: runAddress(runs[index].id), text: runs[index].label });
        row.lastChild.replaceWith(link, element("b", { class: "figure", text: formatNumber(runs[index].y.at(-1)) }));
      });
      return list;
    });
  }

  const fresh = keepFresh(grid, load, (error) => error && shell.fail(error));
  getJson(runPath(ids[0])).then((summary) => {
    const names = Object.keys(summary.metrics);
    if (names.length > 1) {
      metrics.append(select("Measured", names.map((name) => [name, metricName(name)]), metric, (name) => {
        metric = name;
        fresh.changed();
      }));
    }
  }).catch(() => {});
  const unfollow = followChanges(ids, {
    change: () => fresh.changed(), alert: (fired) => shell.alert(fired), connected: shell.connected,
  });
  return () => {
    unfollow();
    fresh.close();
  };
}
