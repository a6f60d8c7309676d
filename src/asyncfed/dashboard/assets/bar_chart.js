// A histogram in SVG: bars, a scale of counts, and what a bar stands for under the pointer.

import { linearTicks, scale } from "./axis_ticks.js";
import { drawing, element } from "./elements.js";
import { formatCount } from "./format.js";

const HEIGHT = 210, TOP = 10, BOTTOM = 30, RIGHT = 10, LEFT = 52;

// Returns show(options); options: bars [{label, count}], tick(index) → text or null, name, marks [{at, text}].
export function barChart(host) {
  const box = element("div", { class: "chart" });
  const tip = element("div", { class: "tip", hidden: true });
  box.append(tip);
  host.append(box);
  let options = null, width = 0;

  new ResizeObserver(() => {
    if (Math.abs(box.clientWidth - width) >= 1 && options) draw();
  }).observe(box);

  function draw() {
    width = box.clientWidth;
    if (width < 40) return;
    const { bars } = options;
    const most = Math.max(1, ...bars.map((bar) => bar.count));
    const toY = scale(0, most, HEIGHT - BOTTOM, TOP, false);
    const step = (width - LEFT - RIGHT) / Math.max(bars.length, 8);
    const svg = drawing("svg", { width, height: HEIGHT, role: "img", "aria-label": options.name });
    for (const value of linearTicks(0, most, 4)) {
      if (!Number.isInteger(value)) continue;
      const y = toY(value);
      svg.append(drawing("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }));
      svg.append(drawing("text", { class: "tick", x: LEFT - 8, y: y + 4, "text-anchor": "end",
        text: formatCount(value) }));
    }
    const every = Math.max(1, Math.ceil(64 / step));
    bars.forEach((bar, index) => {
      const x = LEFT + index * step, gap = step > 5 ? 1 : 0;
      const top = bar.count ? Math.min(toY(bar.count), HEIGHT - BOTTOM - 1.5) : HEIGHT - BOTTOM;
      const rect = drawing("rect", { class: "column", x: x + gap / 2, y: top, width: Math.max(step - gap, 0.5),
        height: HEIGHT - BOTTOM - top });
      const reach = drawing("rect", { class: "reach", x, y: TOP, width: step, height: HEIGHT - BOTTOM - TOP });
      reach.addEventListener("pointerenter", () => point(bar, x + step / 2));
      svg.append(rect, reach);
      if (index % every === 0) {
        svg.append(drawing("text", { class: "tick", x: x + step / 2, y: HEIGHT - BOTTOM + 19, "text-anchor": "middle",
          text: bar.short ?? bar.label }));
      }
    });
    for (const mark of options.marks ?? []) {
      const x = LEFT + mark.at * step;
      if (x > width - RIGHT) continue;
      const anchor = x > width - 120 ? "end" : "start";
      svg.append(drawing("line", { class: "limit", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }));
      svg.append(drawing("text", { class: "tick", x: x + (anchor === "end" ? -5 : 5), y: TOP + 9, "text-anchor": anchor,
        text: mark.text }));
    }
    svg.append(drawing("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: HEIGHT - BOTTOM,
      y2: HEIGHT - BOTTOM }));
    svg.addEventListener("pointerleave", () => { tip.hidden = true; });
    box.querySelector("svg")?.remove();
    box.prepend(svg);
  }

  function point(bar, x) {
    tip.hidden = false;
    tip.replaceChildren(element("div", { class: "quiet", text: bar.label }),
      element("b", { text: `${formatCount(bar.count)} ${options.unit}` }));
    tip.style.transform = `translate(${Math.max(4, Math.min(x + 10, width - tip.offsetWidth - 4))}px, ${TOP}px)`;
  }

  return (next) => {
    options = next;
    draw();
  };
}
