// Loss, accuracy and whatever else was measured, against rounds, time, bytes or energy.

import { getJson, runPath } from "./api.js";
import { seriesStyle } from "./colours.js";
import { choice, element, emptyState, panel } from "./elements.js";
import { AXES, metricName } from "./format.js";
import { legend, lineChart } from "./line_chart.js";

const FAMILIES = [
  ["Loss", (name) => name === "objective" || name === "pooled_loss"
    || /^(train_|validation_|test_|held_out_)?loss$/.test(name)],
  ["Accuracy", (name) => name.endsWith("accuracy")],
];

export function curvesPanel(id) {
  const section = panel("Curves");
  section.classList.add("wide");
  let axis = "round", isLog = true, curves = null, shownKeys = "";
  const axes = element("div"), charts = element("div", { class: "charts" });
  const scaleChoice = choice("Scale of values", [["log", "Log"], ["linear", "Linear"]], "log", (value) => {
    isLog = value === "log";
    draw();
  });
  section.querySelector(".panel-head").append(element("div", { class: "tools" }, axes, scaleChoice));
  section.append(charts);
  const shows = new Map();

  function draw() {
    if (!curves) return;
    const known = Object.keys(AXES).filter((name) => curves[name]?.some((value) => value !== null && value !== 0));
    if (axes.dataset.known !== known.join()) {
      axes.dataset.known = known.join();
      if (!known.includes(axis)) axis = known[0] ?? "round";
      axes.replaceChildren(choice("Against", known.map((name) => [name, AXES[name].button]), axis, (value) => {
        axis = value;
        draw();
      }));
    }
    const groups = familiesOf(curves.metrics);
    const keys = JSON.stringify(groups);
    if (keys !== shownKeys) {
      shownKeys = keys;
      build(groups);
    }
    for (const [title, names] of groups) shows.get(title)?.(optionsOf(title, names));
  }

  function build(groups) {
    shows.clear();
    charts.replaceChildren();
    if (!groups.length) charts.append(emptyState("Nothing was measured yet",
      "The first point comes with the first evaluation."));
    for (const [title, names] of groups) {
      const host = element("figure", { class: "figure-box" }, element("figcaption", { text: title }));
      charts.append(host);
      const show = lineChart(host);
      const described = names.map((name, index) => ({ label: metricName(name), ...seriesStyle(index) }));
      if (names.length > 1) host.append(legend(described));
      shows.set(title, show);
    }
  }

  function optionsOf(title, names) {
    const series = names.map((name, index) => ({
      label: metricName(name), x: curves[axis], y: curves.metrics[name], ...seriesStyle(index),
    }));
    const isShare = title === "Accuracy"; // between 0 and 1 a logarithm shows nothing
    return { series, xAxis: AXES[axis], isLog: isLog && !isShare, label: `${title} against ${AXES[axis].label}` };
  }

  async function load() {
    curves = await getJson(runPath(id, "/curves", { points: 600 }));
    draw();
  }

  return { section, load };
}

// Metrics that are measured in the same unit share a chart; each of the others has one of its own.
// One that is the same as another in its chart is left out: only one of two lines in the same place could be seen.
function familiesOf(metrics) {
  const names = Object.keys(metrics);
  const isNew = (name, place, found) => !found.slice(0, place).some((other) => isSame(metrics[name], metrics[other]));
  const groups = FAMILIES.map(([title, belongs]) => [title, names.filter(belongs).filter(isNew)])
    .filter(([, found]) => found.length);
  const rest = names.filter((name) => !FAMILIES.some(([, belongs]) => belongs(name)));
  return [...groups, ...rest.map((name) => [metricName(name), [name]])];
}

function isSame(values, others) {
  return values.every((value, place) => value === others[place]
    || Math.abs(value - others[place]) <= 1e-6 * Math.abs(value));
}
