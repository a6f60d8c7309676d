// A curve as small as a word.

import { extent, scale } from "./axis_ticks.js";
import { drawing } from "./elements.js";

const WIDTH = 120, HEIGHT = 30;

export function sparkline(values) {
  const isLog = values.length > 0 && values.every((value) => value === null || value > 0);
  const range = extent([values], isLog);
  const svg = drawing("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" });
  if (!range) return svg;
  const toX = scale(0, Math.max(values.length - 1, 1), 2, WIDTH - 4, false);
  const toY = scale(range[0], range[1] === range[0] ? range[0] * 2 || 1 : range[1], HEIGHT - 4, 4, isLog);
  const places = values.map((value, index) => [toX(index), toY(value)]).filter(([, y]) => y !== null);
  svg.append(drawing("polyline", { points: places.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ") }));
  const [x, y] = places.at(-1);
  svg.append(drawing("circle", { cx: x, cy: y, r: 2.5 }));
  return svg;
}
