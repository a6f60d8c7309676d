// Swim lanes: what each client was doing when. Rows are drawn only where they are seen, however many there are.

import { clientAddress } from "./addresses.js";
import { CLIENT_ORDERS } from "./clients_panel.js";
import { clientLabel, element, panel, select } from "./elements.js";
import { formatCount, formatSeconds } from "./format.js";
import { AXIS, LaneCanvas, ROW } from "./lane_canvas.js";
import { LaneData } from "./lane_data.js";
import { listenToLanes } from "./lane_input.js";
import { drawLaneKey, LANE_PARTS, laneKey } from "./lane_style.js";
import { LaneWindow } from "./lane_window.js";
import { onThemeChange } from "./theme.js";

const PAUSE = 80; // milliseconds without movement before the server is asked
const KEYS_TEXT = "Lanes of the clients. Up and down choose a client, left and right move in time, plus and minus "
  + "zoom, 0 shows the whole run, Enter opens the client.";
const QUIET_STATES = new Set(["working", "idle"]);

// options: title, only (see LaneData), height in rows, whether a click opens the client.
export function lanesPanel(id, { title, only = null, height, opens }) {
  const section = panel(title);
  section.classList.add("wide", "lanes-panel");
  const names = element("div", { class: "lane-names", "aria-hidden": "true" });
  const canvas = element("canvas", { class: "lane-canvas" });
  const selection = element("div", { class: "lane-selection", hidden: true });
  const stage = element("div", { class: "lane-stage" }, names,
    element("div", { class: "lane-area" }, canvas, selection));
  const spacer = element("div", { class: "lane-spacer" });
  const scroller = element("div", {
    class: "lane-scroller", tabindex: "0", role: "application",
    "aria-label": KEYS_TEXT,
  }, stage, spacer);
  const tip = element("div", { class: "tip lane-tip", hidden: true }),
    spoken = element("p", { class: "spoken", role: "status" });
  const status = element("span", { class: "quiet figure" });
  const data = new LaneData(id, only), view = new LaneWindow(), paint = new LaneCanvas(canvas);
  let order = "silent", selected = -1, frame = null, timer = null, isLoaded = false, isClosed = false;

  const button = (text, label, action) => element("button", {
    type: "button", text, "aria-label": label, title: label, onclick: () => { action(); moved(); },
  });
  const tools = element("div", { class: "tools" },
    only ? null : select("Order", CLIENT_ORDERS, order, (value) => {
      order = value;
      data.forget();
      scroller.scrollTop = 0;
      moved(0);
    }),
    element("div", { class: "choice" }, button("◀", "Earlier", () => view.pan(-0.4)),
      button("−", "Zoom out", () => view.zoom(2)),
      button("+", "Zoom in", () => view.zoom(0.5)), button("▶", "Later", () => view.pan(0.4))),
    element("div", { class: "choice" }, button("Whole run", "Show the whole run", () => view.showAll()),
      button("Latest", "Follow the latest tenth", () => view.showLatest())));
  section.querySelector(".panel-head").append(tools);
  const key = element("ul", { class: "legend lane-key" });
  section.append(scroller, element("div", { class: "lane-foot" }, key, status), spoken, tip);

  const firstRow = () => Math.max(0, Math.floor(scroller.scrollTop / ROW));
  const lastRow = () => Math.min(Math.max(data.total - 1, 0),
    Math.ceil((scroller.scrollTop + scroller.clientHeight) / ROW));

  function layOut() {
    const rows = Math.max(1, Math.min(height, data.total));
    scroller.style.height = `${AXIS + rows * ROW + 2}px`;
    spacer.style.height = `${data.total * ROW + AXIS}px`;
    stage.style.height = `${scroller.clientHeight}px`;
    spacer.style.marginTop = `-${scroller.clientHeight}px`;
    paint.resize(canvas.parentElement.clientWidth, scroller.clientHeight);
  }

  function draw() {
    frame = null;
    if (!isLoaded || isClosed) return;
    view.now = data.now;
    layOut();
    if (paint.width < 20) return;
    const rows = [];
    for (let index = firstRow(); index <= lastRow(); index += 1) {
      rows.push({ index, ...(data.row(index) ?? { lane: null, state: null }) });
    }
    const { from, to } = view.range;
    paint.draw({ from, to, now: data.now, top: scroller.scrollTop, selected }, rows);
    drawNames(rows);
    const clients = `${formatCount(data.total)} ${data.total === 1 ? "client" : "clients"}`;
    status.textContent = `${clients}, ${formatSeconds(from)} to ${formatSeconds(to)}`;
  }

  function drawNames(rows) {
    const made = rows.map(({ index, lane, state }) => {
      const isQuiet = !state || QUIET_STATES.has(state.state);
      const word = isQuiet ? null
        : element("span", { class: "lane-state", "data-state": state.state, text: state.state });
      const name = element("div", { class: "lane-name", "data-state": state?.state, "data-client": lane?.client },
        element("span", { class: "lane-label", text: lane ? clientLabel(lane) : "…",
          title: lane ? clientLabel(lane) : null }), word);
      name.style.transform = `translateY(${AXIS + index * ROW - scroller.scrollTop}px)`;
      return name;
    });
    names.replaceChildren(...made);
  }

  // The parts that were seen so far: the key grows and never jumps.
  function drawKey() {
    const seen = new Set(key.shown);
    for (let index = firstRow(); index <= lastRow(); index += 1) {
      const { lane, state } = data.row(index) ?? {};
      for (const part of lane?.segments ?? []) seen.add(lane.codes[part[2]]);
      for (const part of lane?.bins ?? []) seen.add(lane.codes[part[0]]);
      if (state && (state.state === "silent" || state.state === "never heard")) seen.add("away");
    }
    seen.delete("idle");
    if (key.shown?.size === seen.size) return;
    key.shown = seen;
    const merged = element("li", {}, element("span", { class: "merge-sample" }), element("span", { text: "merged" }));
    key.replaceChildren(...laneKey(Object.keys(LANE_PARTS).filter((name) => seen.has(name))), merged);
    drawLaneKey(key);
  }

  const redraw = () => { frame ??= requestAnimationFrame(draw); };

  // Draw at once with what is known, and ask for the rest when the movement is over.
  function moved(pause = PAUSE) {
    redraw();
    clearTimeout(timer);
    timer = setTimeout(() => load().catch(() => {}), pause);
  }

  async function load() {
    const width = Math.min(Math.max(canvas.parentElement.clientWidth, 200), 1600);
    try {
      await data.ask(firstRow(), lastRow(), view.question, order, width);
    } catch (error) {
      if (error.name === "AbortError") return; // a later question is on its way
      throw error;
    }
    const isFirst = !isLoaded;
    isLoaded = true;
    draw();
    drawKey();
    if (isFirst && data.row(lastRow()) === null) moved(0);
  }

  function chooseRow(index, says = true) {
    if (index === selected) return;
    selected = Math.max(-1, Math.min(index, data.total - 1));
    if (says && selected >= 0) {
      const top = selected * ROW;
      if (top < scroller.scrollTop) scroller.scrollTop = top;
      const room = scroller.clientHeight - AXIS;
      if (top + ROW > scroller.scrollTop + room) scroller.scrollTop = top + ROW - room;
      const row = data.row(selected);
      const merged = `${formatCount(row?.state?.merged)} updates merged`;
      if (row) spoken.textContent = `${clientLabel(row.lane)}, ${row.state?.state ?? ""}, ${merged}`;
    }
    redraw();
  }

  function openClient(index) {
    const row = data.row(index);
    if (row && opens) location.hash = clientAddress(id, row.lane.client);
  }

  listenToLanes({
    scroller, canvas, selection, tip, section, view, moved, openClient, rowOf: (index) => data.row(index),
    total: () => data.total, selected: () => selected, selectRow: chooseRow,
  });
  scroller.addEventListener("scroll", () => moved(), { passive: true });
  const watcher = new ResizeObserver(redraw);
  watcher.observe(section);
  const forgetTheme = onThemeChange(() => {
    paint.forgetStyles();
    drawLaneKey(key);
    redraw();
  });

  return {
    section, load,
    close() {
      isClosed = true;
      clearTimeout(timer);
      watcher.disconnect();
      forgetTheme();
      data.waiting?.abort();
    },
  };
}
