// Draws lanes on a canvas: segments where there is room, else bars as high as the share of time that was filled.

import { timeTicks } from "./axis_ticks.js";
import { formatSeconds } from "./format.js";
import { laneStyles } from "./lane_style.js";

export const ROW = 26;
export const AXIS = 26;
const BAR = 14, WIDE = 4, MERGE_ROOM = 6;

export class LaneCanvas {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.styles = null;
    this.width = this.height = 0;
  }

  resize(width, height) {
    const ratio = window.devicePixelRatio || 1;
    if (width === this.width && height === this.height && this.styles) return;
    [this.width, this.height] = [width, height];
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.styles = laneStyles(this.canvas.parentElement, this.context, ratio);
  }

  forgetStyles() {
    this.styles = null;
  }

  // view: {from, to, now, top (pixels scrolled), selected}; rows: [{index, lane, state}], lanes that are loaded.
  draw(view, rows) {
    const pen = this.context, scale = this.width / (view.to - view.from);
    pen.clearRect(0, 0, this.width, this.height);
    this.drawAxis(view, scale);
    pen.save();
    pen.beginPath();
    pen.rect(0, AXIS, this.width, this.height - AXIS);
    pen.clip();
    for (const { index, lane, state } of rows) {
      const top = AXIS + index * ROW - view.top;
      if (index === view.selected) {
        pen.fillStyle = this.styles.colours.hover;
        pen.fillRect(0, top, this.width, ROW);
      }
      this.drawBaseline(top);
      if (!lane) continue;
      if (lane.bins) this.drawBins(lane, view, scale, top);
      else this.drawSegments(lane, view, scale, top);
      if (state) this.drawAbsence(state, view, scale, top);
    }
    this.drawMerges(view, rows, scale);
    this.drawNow(view, scale);
    pen.restore();
  }

  drawAxis(view, scale) {
    const pen = this.context, { colours } = this.styles;
    pen.font = "12px ui-sans-serif, system-ui, sans-serif";
    for (const value of timeTicks(view.from, view.to, Math.max(3, this.width / 120))) {
      const x = Math.round((value - view.from) * scale) + 0.5;
      pen.fillStyle = colours.line;
      pen.fillRect(x, AXIS - 5, 1, this.height);
      pen.fillStyle = colours.muted;
      const text = formatTick(value, view.to - view.from), wide = pen.measureText(text).width;
      pen.fillText(text, Math.min(Math.max(x - wide / 2, 0), this.width - wide), AXIS - 10);
    }
  }

  drawBaseline(top) {
    this.context.fillStyle = this.styles.parts.idle.solid;
    this.context.fillRect(0, Math.round(top + ROW / 2), this.width, 1);
  }

  drawSegments(lane, view, scale, top) {
    const pen = this.context, y = top + (ROW - BAR) / 2;
    let reached = -1, last = "";
    for (const [begin, end, code] of lane.segments) {
      if (end < view.from || begin > view.to) continue;
      const name = lane.codes[code], left = Math.max(-2, (begin - view.from) * scale);
      const least = begin === end ? 3 : 1; // a moment, such as a refusal, is a mark
      const right = Math.min(this.width + 2, Math.max((end - view.from) * scale, left + least));
      if (right <= reached && name === last) continue; // it would be drawn on the same pixels
      [reached, last] = [Math.ceil(right), name];
      const style = this.styles.parts[name], isWide = right - left >= WIDE;
      pen.fillStyle = isWide ? style.patterned : style.solid;
      const gap = isWide ? 1 : 0; // two tickets side by side stay two
      pen.fillRect(left, y, right - left - gap, BAR);
    }
  }

  drawBins(lane, view, scale, top) {
    const pen = this.context, size = (lane.to - lane.from) / lane.bins.length, bottom = top + (ROW + BAR) / 2;
    let place = 0;
    while (place < lane.bins.length) {
      const begin = place, [code, share] = lane.bins[begin];
      do place += 1; while (place < lane.bins.length && lane.bins[place][0] === code && lane.bins[place][1] === share);
      const left = (lane.from + begin * size - view.from) * scale, wide = Math.max(1, (place - begin) * size * scale);
      if (left + wide < 0 || left > this.width || code === 0) continue;
      const style = this.styles.parts[lane.codes[code]], high = Math.max(2, BAR * share);
      pen.fillStyle = wide >= WIDE ? style.patterned : style.solid;
      pen.fillRect(left, bottom - high, wide + 0.3, high); // a little wider, so that nothing shines through
    }
  }

  drawAbsence({ state, since }, view, scale, top) {
    if (!["silent", "left", "set aside", "never heard"].includes(state)) return;
    const pen = this.context, left = Math.max(0, ((since ?? 0) - view.from) * scale);
    const right = Math.min(this.width, (view.now - view.from) * scale);
    if (right - left < 1) return;
    if (state === "silent" || state === "never heard") { // the others are parts of the lane itself
      pen.fillStyle = this.styles.parts.away.patterned;
      pen.fillRect(left, top + ROW / 2 - 4, right - left, 8);
    }
    const text = state === "never heard" ? "never heard" : `${state} since ${formatSeconds(since)}`;
    pen.font = "600 12px ui-sans-serif, system-ui, sans-serif";
    const wide = pen.measureText(text).width + 12;
    if (right - left < wide + 8) return;
    pen.fillStyle = this.styles.colours.surface;
    pen.fillRect(left + 6, top + 4, wide, ROW - 8);
    pen.fillStyle = this.styles.colours.ink;
    pen.fillText(text, left + 12, top + ROW / 2 + 4);
  }

  drawMerges(view, rows, scale) {
    const pen = this.context;
    pen.fillStyle = this.styles.colours.ink;
    const times = rows.map(({ lane }) => lane?.merges.filter((time) => time >= view.from && time <= view.to) ?? []);
    if (times.some((shown) => shown.length > this.width / MERGE_ROOM)) return; // they would be a line
    for (const [place, shown] of times.entries()) {
      const { index } = rows[place];
      const y = AXIS + index * ROW - view.top + (ROW + BAR) / 2 + 1;
      for (const time of shown) pen.fillRect(Math.round((time - view.from) * scale) - 1, y, 2, 4);
    }
  }

  drawNow(view, scale) {
    const x = Math.round((view.now - view.from) * scale);
    if (x < 0 || x >= this.width - 1) return;
    this.context.fillStyle = this.styles.colours.muted;
    this.context.fillRect(x, AXIS, 1, this.height);
  }
}

// The label of a mark: with as many digits as the window needs, so that no two marks look the same.
function formatTick(value, span) {
  if (span >= 10) return formatSeconds(value);
  const digits = Math.max(0, Math.ceil(-Math.log10(span / 10)));
  return span < 0.01 ? `${(value * 1e3).toFixed(Math.max(0, digits - 3))} ms` : `${value.toFixed(digits)} s`;
}
