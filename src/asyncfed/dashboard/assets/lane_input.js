// Pointer, wheel and keys on the lanes: drag to zoom in, Shift and drag to move, Ctrl and wheel to zoom.

import { clientLabel, element } from "./elements.js";
import { formatSeconds } from "./format.js";
import { AXIS, ROW } from "./lane_canvas.js";
import { LANE_PARTS } from "./lane_style.js";

const LEAST_DRAG = 6; // pixels; less is a click

export function listenToLanes(lanes) {
  const { scroller, canvas, selection, tip, section, view, moved } = lanes;
  const { openClient, rowOf, total, selected, selectRow } = lanes;
  let drag = null;

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top, width: box.width };
  };
  const rowAt = (y) => (y < AXIS ? -1 : Math.floor((y - AXIS + scroller.scrollTop) / ROW));
  const span = (from, { x, width }) => [Math.max(0, Math.min(from, x)), Math.min(width, Math.max(from, x))];
  const timeAt = ({ x, width }) => view.range.from + (x / width) * (view.range.to - view.range.from);

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const isPan = event.shiftKey || event.pointerType === "touch";
    drag = { ...place(event), isPan, last: place(event).x, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });

  canvas.addEventListener("pointermove", (event) => {
    const at = place(event);
    if (!drag) {
      showTip(event, at);
      return;
    }
    tip.hidden = true;
    if (Math.abs(at.x - drag.x) > LEAST_DRAG) drag.moved = true;
    if (!drag.moved) return;
    if (drag.isPan) {
      view.pan((drag.last - at.x) / at.width);
      drag.last = at.x;
      moved();
    } else {
      const [left, right] = span(drag.x, at);
      selection.hidden = false;
      selection.style.transform = `translateX(${left}px)`;
      selection.style.width = `${right - left}px`;
    }
  });

  canvas.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const at = place(event), { isPan, moved: hasMoved } = drag;
    const [left, right] = span(drag.x, at), { width } = at;
    const [from, to] = [timeAt({ x: left, width }), timeAt({ x: right, width })];
    drag = null;
    selection.hidden = true;
    if (!hasMoved) openClient(rowAt(at.y));
    else if (!isPan) {
      view.choose(from, to);
      moved();
    }
  });

  canvas.addEventListener("pointercancel", () => {
    drag = null;
    selection.hidden = true;
  });

  canvas.addEventListener("pointerleave", () => {
    tip.hidden = true;
    if (!scroller.matches(":focus-visible")) selectRow(-1, false);
  });

  scroller.addEventListener("click", (event) => {
    const name = event.target.closest(".lane-name");
    if (name) openClient(rowAt(event.clientY - canvas.getBoundingClientRect().top));
  });

  scroller.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const at = place(event);
      view.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 150), Math.min(1, Math.max(0, at.x / at.width)));
      moved();
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      event.preventDefault();
      view.pan((event.deltaX || event.deltaY) / place(event).width);
      moved();
    }
  }, { passive: false });

  const keys = {
    ArrowDown: () => selectRow(selected() + 1), ArrowUp: () => selectRow(Math.max(0, selected() - 1)),
    PageDown: () => selectRow(Math.min(total() - 1, selected() + 10)),
    PageUp: () => selectRow(Math.max(0, selected() - 10)),
    Home: () => selectRow(0), End: () => selectRow(total() - 1),
    ArrowLeft: () => view.pan(-0.2), ArrowRight: () => view.pan(0.2),
    "+": () => view.zoom(0.5), "=": () => view.zoom(0.5), "-": () => view.zoom(2), 0: () => view.showAll(),
    Enter: () => openClient(selected()),
  };
  scroller.addEventListener("keydown", (event) => {
    const action = keys[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
    moved();
  });

  function showTip(event, at) {
    const index = rowAt(at.y), row = index >= 0 ? rowOf(index) : null;
    selectRow(row ? index : -1, false);
    tip.hidden = !row;
    if (!row) return;
    tip.replaceChildren(...tipLines(row, timeAt(at), ((view.range.to - view.range.from) / at.width) * 2));
    const box = section.getBoundingClientRect();
    const left = Math.min(event.clientX - box.left + 14, box.width - tip.offsetWidth - 8);
    tip.style.transform = `translate(${Math.max(8, left)}px, ${event.clientY - box.top + 18}px)`;
  }
}

function tipLines({ lane, state }, time, reach) {
  const lines = [element("b", { text: clientLabel(lane) })];
  const part = lane.segments?.findLast(([begin, end]) => begin - reach <= time && time <= end + reach);
  if (part) {
    const [begin, end, code, ticket] = part;
    const what = LANE_PARTS[lane.codes[code]].text, number = ticket >= 0 ? `, ticket ${ticket}` : "";
    lines.push(element("div", { text: `${what}${number}` }));
    lines.push(element("div", { class: "quiet", text: begin === end ? `at ${formatSeconds(begin)}`
      : `${formatSeconds(begin)} to ${formatSeconds(end)}: ${formatSeconds(end - begin)}` }));
  } else if (lane.bins) {
    const place = Math.floor(((time - lane.from) / (lane.to - lane.from)) * lane.bins.length);
    const [code, share] = lane.bins[place] ?? [0, 0];
    const what = LANE_PARTS[lane.codes[code]].text;
    lines.push(element("div", { text: `${what}, ${Math.round(100 * share)} % of this moment` }));
    lines.push(element("div", { class: "quiet", text: `around ${formatSeconds(time)}; zoom in for single tickets` }));
  } else {
    lines.push(element("div", { class: "quiet", text: `idle at ${formatSeconds(time)}` }));
  }
  if (state) lines.push(element("div", { class: "quiet", text: `now ${state.state}` }));
  return lines;
}
