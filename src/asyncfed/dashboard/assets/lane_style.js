// How each part of a lane is drawn: a colour, and a pattern that tells it apart without colours.

import { readColours } from "./colours.js";
import { element } from "./elements.js";

export const LANE_PARTS = {
  idle: { text: "idle", colour: "lane-idle", pattern: "none" },
  waiting: { text: "waiting for the client", colour: "lane-waiting", pattern: "dots" },
  download: { text: "download", colour: "lane-download", pattern: "solid" },
  train: { text: "working", colour: "lane-train", pattern: "solid" },
  upload: { text: "upload", colour: "lane-upload", pattern: "solid" },
  "in flight": { text: "out now", colour: "lane-train", pattern: "rising" },
  lost: { text: "lost", colour: "lane-lost", pattern: "crossed" },
  cancelled: { text: "cancelled", colour: "lane-cancelled", pattern: "level" },
  refused: { text: "refused", colour: "lane-refused", pattern: "falling" },
  "set aside": { text: "set aside", colour: "lane-aside", pattern: "crossed" },
  away: { text: "away or silent", colour: "lane-aside", pattern: "falling" },
};

const COLOURS = [...new Set(Object.values(LANE_PARTS).map((part) => part.colour)), "ink", "muted", "line", "surface",
  "hover"];
const SIZE = 8;

// Fill styles for a canvas: by part, `solid` for slivers and `patterned` for what is wide enough to show it.
export function laneStyles(host, context, ratio) {
  const colours = readColours(host, COLOURS);
  const parts = {};
  for (const [name, { colour, pattern }] of Object.entries(LANE_PARTS)) {
    parts[name] = { solid: colours[colour], patterned: makePattern(context, pattern, colours[colour], ratio) };
  }
  return { parts, colours };
}

function makePattern(context, pattern, colour, ratio) {
  if (pattern === "solid" || pattern === "none") return colour;
  const tile = document.createElement("canvas");
  tile.width = tile.height = SIZE * ratio;
  const pen = tile.getContext("2d");
  pen.scale(ratio, ratio);
  pen.strokeStyle = pen.fillStyle = colour;
  pen.globalAlpha = 0.28;
  pen.fillRect(0, 0, SIZE, SIZE);
  pen.globalAlpha = 1;
  pen.lineWidth = 1.6;
  pen.beginPath();
  if (pattern === "dots") pen.arc(SIZE / 2, SIZE / 2, 1.5, 0, 7);
  if (pattern === "level") {
    pen.moveTo(0, SIZE / 4); pen.lineTo(SIZE, SIZE / 4);
    pen.moveTo(0, (3 * SIZE) / 4); pen.lineTo(SIZE, (3 * SIZE) / 4);
  }
  if (pattern === "rising" || pattern === "crossed") slope(pen, 1);
  if (pattern === "falling" || pattern === "crossed") slope(pen, -1);
  if (pattern === "dots") pen.fill();
  else pen.stroke();
  const made = context.createPattern(tile, "repeat");
  made.setTransform(new DOMMatrix().scale(1 / ratio));
  return made;
}

function slope(pen, sign) {
  for (const shift of [-SIZE, 0, SIZE]) {
    pen.moveTo(shift, sign > 0 ? SIZE : 0);
    pen.lineTo(shift + SIZE, sign > 0 ? 0 : SIZE);
  }
}

export function laneKey(names) {
  return names.map((name) => {
    const sample = element("canvas", { class: "lane-sample", "data-part": name, "aria-hidden": "true" });
    return element("li", {}, sample, element("span", { text: LANE_PARTS[name].text }));
  });
}

export function drawLaneKey(host) {
  const ratio = window.devicePixelRatio || 1;
  for (const sample of host.querySelectorAll("canvas")) {
    sample.width = 22 * ratio;
    sample.height = 12 * ratio;
    const pen = sample.getContext("2d");
    pen.scale(ratio, ratio);
    const { parts } = laneStyles(host, pen, ratio);
    pen.fillStyle = parts[sample.dataset.part].patterned;
    pen.fillRect(0, 0, 22, 12);
  }
}
