"use strict";
// Draws every figure from the page's own data, and lets the reader switch series on and off.

const darkness = matchMedia("(prefers-color-scheme: dark)");
let INK, FAINT, GRID, PAPER;

function readColours() {
  const style = getComputedStyle(document.documentElement);
  [INK, FAINT, GRID, PAPER] = ["--ink", "--axis", "--grid", "--paper"].map((name) => style.getPropertyValue(name).trim());
}

// The lines' colours are chosen for white paper: on dark paper each is mixed with white until it stands out.
const LEAST_CONTRAST = 4.5;
const channels = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
const longHex = (colour) => (colour.length === 4 ? "#" + [...colour.slice(1)].map((digit) => digit + digit).join("") : colour);

function luminance(colour) {
  const [r, g, b] = channels(longHex(colour)).map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function shown(colour) {
  if (!darkness.matches) return colour;
  const paper = luminance(PAPER);
  for (let share = 0; share < 1; share += 0.05) {
    const mixed = "#" + channels(longHex(colour)).map((value) => Math.round(value + (255 - value) * share).toString(16).padStart(2, "0")).join("");
    if ((luminance(mixed) + 0.05) / (paper + 0.05) >= LEAST_CONTRAST) return mixed;
  }
  return "#ffffff";
}

const figures = JSON.parse(document.getElementById("figure-data").textContent);
const POINT = 4 / 3; // pixels: widths are given in points, as on paper
const byTouch = matchMedia("(pointer: coarse)").matches;

// Plotly reads a little HTML and its own %{…} in every text; ours are plain.
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/%\{/g, "% {");
const missing = (value) => value === null || value === undefined;
const faded = (colour) => colour + "2e";

function stretches(series) {
  // Where a band is known without a gap: lists of places.
  const found = [[]];
  series.low.forEach((low, i) => {
    if (missing(low) || missing(series.high[i])) found.push([]);
    else found[found.length - 1].push(i);
  });
  return found.filter((places) => places.length > 1);
}

function band(series, style, floor) {
  const x = [], y = [];
  for (const places of stretches(series)) {
    const back = [...places].reverse();
    x.push(...places.map((i) => series.x[i]), ...back.map((i) => series.x[i]), null);
    y.push(...places.map((i) => series.high[i]), ...back.map((i) => Math.max(series.low[i], floor)), null);
  }
  return { x, y, type: "scatter", mode: "lines", line: { width: 0 }, fill: "toself", fillcolor: faded(shown(style.colour)), hoverinfo: "skip" };
}

function whiskers(series) {
  if (!series.low.length) return undefined;
  const gap = (ends) => series.y.map((y, i) => (missing(y) || missing(ends[i]) ? 0 : Math.abs(ends[i] - y)));
  return { type: "data", symmetric: false, array: gap(series.high), arrayminus: gap(series.low), thickness: 1.2, color: INK };
}

function hover(panel, style) {
  const name = style.group && !style.label.includes(style.group) ? `${style.label} (${style.group})` : style.label;
  return `<b>${plain(name)}</b><br>${plain(panel.x_label)}: %{x:.6~g}<br>${plain(panel.y_label)}: %{y:.4~g}%{customdata}<extra></extra>`;
}

function traces(panel, series, style) {
  const short = (value) => Number(value.toPrecision(3));
  const between = series.y.map((_, i) =>
    missing(series.low[i]) || missing(series.high[i]) ? "" : `<br>band: ${short(series.low[i])} to ${short(series.high[i])}`);
  const main = { x: series.x, y: series.y, customdata: between, name: plain(style.label), hovertemplate: hover(panel, style) };
  if (series.kind === "bar") return [{ ...main, type: "bar", marker: { color: shown(style.colour) }, error_y: whiskers(series) }];
  if (series.kind === "points")
    return [{ ...main, type: "scatter", mode: "markers", marker: { color: shown(style.colour), size: 6, line: { color: INK, width: 1 } }, error_y: whiskers(series) }];
  const dash = style.dash.length ? style.dash.map((d) => `${d * style.width * POINT}px`).join(",") : "solid";
  const few = series.y.filter((y) => !missing(y)).length < 3;
  const line = { ...main, type: "scatter", mode: few ? "lines+markers" : "lines", line: { color: shown(style.colour), dash, width: style.width * POINT } };
  const floor = panel.y_log ? (panel.y_range ? panel.y_range[0] / 10 : 1e-300) : -Infinity;
  return series.low.length ? [band(series, style, floor), line] : [line];
}

function logTicks(range) {
  const minor = { ticks: "outside", ticklen: 3, tickcolor: FAINT };
  if (!range || range[1] / range[0] >= 30) return { dtick: 1, minor };
  // Too few powers of ten to read the axis by: 1, 2 and 5 of each, and a few beyond the ends for readers who zoom out.
  const tickvals = [];
  for (let power = Math.floor(Math.log10(range[0])) - 2; power < Math.log10(range[1]) + 2; power++)
    tickvals.push(...[1, 2, 5].map((digit) => Number(`${digit}e${power}`)));
  return { tickmode: "array", tickvals, ticktext: tickvals.map(String) };
}

function axis(label, log, range) {
  return {
    title: { text: plain(label), font: { size: 12 } }, type: log ? "log" : "linear", gridcolor: GRID, linecolor: FAINT,
    zeroline: false, automargin: true, exponentformat: "power", ticks: "outside", ticklen: 5, tickcolor: FAINT,
    ...(range ? { range: range.map(Math.log10) } : {}), ...(log ? logTicks(range) : {}),
  };
}

function draw(figure, panel, place) {
  const drawn = panel.series.flatMap((series) =>
    traces(panel, series, figure.legend[series.key]).map((trace) => ({ ...trace, meta: series.key })));
  const layout = {
    showlegend: false, hovermode: "closest", barmode: "group", dragmode: byTouch ? false : "zoom",
    paper_bgcolor: PAPER, plot_bgcolor: PAPER, hoverlabel: { font: { family: "system-ui, sans-serif" } }, font: { color: INK, family: "system-ui, sans-serif", size: 12 },
    margin: { l: 10, r: 14, t: 28, b: 10 }, xaxis: axis(panel.x_label, panel.x_log), yaxis: axis(panel.y_label, panel.y_log, panel.y_range),
  };
  // Plotly's own button that sends charts to its makers' cloud is off.
  const options = { responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "", modeBarButtonsToRemove: ["select2d", "lasso2d"] };
  return Plotly.react(place, drawn, layout, options);
}

function show(section, wanted) {
  // `wanted` maps a series' key to true, false, or undefined for "as it is".
  for (const chip of section.querySelectorAll(".series")) {
    const choice = wanted(Number(chip.dataset.key));
    if (choice !== undefined) chip.setAttribute("aria-pressed", choice);
  }
  const on = (key) => section.querySelector(`.series[data-key="${key}"]`).getAttribute("aria-pressed") === "true";
  for (const place of section.querySelectorAll(".plot"))
    if (place.data) Plotly.restyle(place, { visible: place.data.map((trace) => on(trace.meta)) });
}

function connect(figure, section) {
  const pressed = (chip) => chip.getAttribute("aria-pressed") === "true";
  const chips = [...section.querySelectorAll(".series")];
  for (const chip of chips)
    chip.addEventListener("click", () => show(section, (key) => (key === Number(chip.dataset.key) ? !pressed(chip) : undefined)));
  for (const button of section.querySelectorAll(".set"))
    button.addEventListener("click", () => {
      if (button.dataset.set === "all" || button.dataset.set === "none") return show(section, () => button.dataset.set === "all");
      const members = figure.legend.map((style) => style.group === button.dataset.group);
      const all = chips.every((chip) => !members[chip.dataset.key] || pressed(chip));
      return show(section, (key) => (members[key] ? !all : undefined));
    });
  section.querySelector(".download").addEventListener("click", () => download(figure));
}

function download(figure) {
  const cell = (value) => (missing(value) ? "" : /[",\n]/.test(value) ? `"${String(value).replace(/"/g, '""')}"` : String(value));
  const rows = [["panel", "x_label", "y_label", "group", "label", "x", "y", "low", "high"]];
  for (const panel of figure.panels)
    for (const series of panel.series)
      series.x.forEach((x, i) => {
        const { group, label } = figure.legend[series.key];
        rows.push([panel.title, panel.x_label, panel.y_label, group, label, x, series.y[i], series.low[i], series.high[i]]);
      });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([rows.map((row) => row.map(cell).join(",") + "\n").join("")], { type: "text/csv" }));
  link.download = `${figure.name}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function paintSamples(figure, section) {
  for (const chip of section.querySelectorAll(".series")) {
    const sample = chip.querySelector("svg > *"), colour = shown(figure.legend[chip.dataset.key].colour);
    sample.setAttribute(sample.tagName === "line" ? "stroke" : "fill", colour);
  }
}

async function drawAll() {
  readColours();
  for (const figure of figures) {
    const section = document.getElementById(`figure-${figure.name}`);
    paintSamples(figure, section);
    const places = section.querySelectorAll(".plot");
    for (const [i, panel] of figure.panels.entries()) {
      await draw(figure, panel, places[i]);
      await new Promise((resume) => setTimeout(resume)); // the page reacts to the reader between two plots
    }
    show(section, () => undefined); // hides series that were switched off while their plot was being drawn
  }
  document.body.dataset.drawn = "all";
}

for (const figure of figures) connect(figure, document.getElementById(`figure-${figure.name}`));
darkness.addEventListener("change", drawAll);
drawAll();
