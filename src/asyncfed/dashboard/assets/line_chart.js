// Curves in SVG: axes, a line for each series, and the values under the pointer.

import { extent, linearTicks, logTicks, scale, timeTicks } from "./axis_ticks.js";
import { drawing, element } from "./elements.js";
import { formatNumber } from "./format.js";

const HEIGHT = 230, TOP = 10, BOTTOM = 30, RIGHT = 14, LEFT = 58;

// Returns show(options); options: series [{label, x, y, colour, dash}], xAxis (of AXES), isLog, label, height.
export function lineChart(host) {
  const box = element("div", { class: "chart" });
  const tip = element("div", { class: "tip", hidden: true });
  box.append(tip);
  host.append(box);
  let options = null, width = 0, places = null;

  new ResizeObserver(() => {
    if (Math.abs(box.clientWidth - width) >= 1 && options) draw();
  }).observe(box);
  box.addEventListener("pointermove", (event) => places && pointAt(event));
  box.addEventListener("pointerleave", () => point(null));

  function draw() {
    width = box.clientWidth;
    if (width < 40) return;
    const height = options.height ?? HEIGHT;
    const { series, isLog, xAxis } = options;
    const xs = extent(series.map((line) => line.x), false), ys = extent(series.map((line) => line.y), isLog);
    box.querySelector("svg")?.remove();
    box.querySelector(".empty")?.remove();
    places = null;
    if (!xs || !ys) {
      const text = isLog ? "No value above zero; choose the linear scale." : "Nothing was measured yet.";
      box.append(element("p", { class: "empty quiet", text }));
      return;
    }
    if (xs[0] === xs[1]) xs[1] = xs[0] + 1;
    const margin = isLog ? 0 : 0.05 * (ys[1] - ys[0] || Math.abs(ys[1]) || 1);
    const [low, high] = isLog ? widen(ys) : [ys[0] - margin, ys[1] + margin];
    const toX = scale(xs[0], xs[1], LEFT, width - RIGHT, false);
    const toY = scale(low, high, height - BOTTOM, TOP, isLog);
    const svg = drawing("svg", { width, height, role: "img", "aria-label": options.label });
    drawGrid(svg, { xs, low, high, toX, toY, width, height, isLog, xAxis });
    for (const line of series) svg.append(drawLine(line, toX, toY));
    const cursor = drawing("line", { class: "cursor", y1: TOP, y2: height - BOTTOM, visibility: "hidden" });
    svg.append(cursor);
    box.prepend(svg);
    places = { toX, toY, cursor };
  }

  function pointAt(event) {
    const x = event.clientX - box.getBoundingClientRect().left;
    let best = null;
    for (const line of options.series) {
      const place = nearest(line.x, places.toX, x);
      if (place < 0) continue;
      const away = Math.abs(places.toX(line.x[place]) - x);
      if (best === null || away < best.away) best = { away, value: line.x[place] };
    }
    point(best?.value ?? null);
  }

  function point(value) {
    tip.hidden = value === null || places === null;
    places?.cursor.setAttribute("visibility", tip.hidden ? "hidden" : "visible");
    if (tip.hidden) return;
    const x = places.toX(value);
    places.cursor.setAttribute("x1", x);
    places.cursor.setAttribute("x2", x);
    const rows = options.series.map((line) => {
      const place = nearest(line.x, places.toX, x);
      return element("div", { class: "tip-row" }, swatch(line), element("span", { text: line.label }),
        element("b", { text: formatNumber(place < 0 ? null : line.y[place]) }));
    });
    const head = element("div", { class: "quiet", text: `${options.xAxis.format(value)} (${options.xAxis.label})` });
    tip.replaceChildren(head, ...rows);
    const left = x + 14 + tip.offsetWidth > width ? Math.max(4, x - 14 - tip.offsetWidth) : x + 14;
    tip.style.transform = `translate(${left}px, ${TOP}px)`;
  }

  return (next) => {
    options = next;
    draw();
  };
}

export function swatch({ colour, dash }) {
  const line = drawing("line", { x1: 0, x2: 20, y1: 5, y2: 5, "stroke-width": 2, "stroke-dasharray": dash || null });
  line.style.stroke = colour;
  return drawing("svg", { width: 20, height: 10, class: "swatch", "aria-hidden": "true" }, line);
}

export function legend(series) {
  return element("ul", { class: "legend" },
    series.map((line) => element("li", {}, swatch(line), element("span", { text: line.label }))));
}

function drawGrid(svg, { xs, low, high, toX, toY, width, height, isLog, xAxis }) {
  const yTicks = (isLog ? logTicks : linearTicks)(low, high, 5);
  for (const value of yTicks) {
    const y = toY(value);
    svg.append(drawing("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }));
    svg.append(drawing("text", { class: "tick", x: LEFT - 8, y: y + 4, "text-anchor": "end",
      text: formatNumber(value, 3) }));
  }
  const count = Math.max(2, Math.floor(width / 110));
  const ticks = xAxis.label === "time" ? timeTicks(xs[0], xs[1], count) : linearTicks(xs[0], xs[1], count);
  for (const value of ticks) {
    if (xAxis.whole && !Number.isInteger(value)) continue;
    const x = toX(value);
    const anchor = x > width - 40 ? "end" : "middle";
    svg.append(drawing("line", { class: "mark", x1: x, x2: x, y1: height - BOTTOM, y2: height - BOTTOM + 4 }));
    svg.append(drawing("text", { class: "tick", x, y: height - BOTTOM + 19, "text-anchor": anchor,
      text: xAxis.format(value) }));
  }
  svg.append(drawing("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: height - BOTTOM, y2: height - BOTTOM }));
}

function drawLine({ x, y, colour, dash }, toX, toY) {
  const parts = [];
  let isDown = false, known = 0;
  for (let place = 0; place < x.length; place += 1) {
    const left = toX(x[place]), top = toY(y[place]);
    if (left === null || top === null) {
      isDown = false;
      continue;
    }
    parts.push(`${isDown ? "L" : "M"}${left.toFixed(1)} ${top.toFixed(1)}`);
    isDown = true;
    known += 1;
  }
  if (known === 1) parts.push("h0.01"); // a single point shows as a dot
  const line = drawing("path", { class: "line", d: parts.join(""), "stroke-dasharray": dash || null });
  line.style.stroke = colour;
  if (known === 1) line.classList.add("dot");
  return line;
}

function widen([low, high]) {
  return low === high ? [low / 2, high * 2] : [low * (low / high) ** 0.04, high * (high / low) ** 0.04];
}

// Where in an ascending list the value nearest to a place on the screen is; -1 in an empty list.
function nearest(values, toX, x) {
  let low = 0, high = values.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (toX(values[middle]) < x) low = middle + 1;
    else high = middle;
  }
  if (low > 0 && Math.abs(toX(values[low - 1]) - x) <= Math.abs(toX(values[low]) - x)) return low - 1;
  return low < values.length ? low : -1;
}
