// The lanes that a page has: asked for in blocks of rows, kept until they are replaced, so that scrolling shows what is
// known while the rest is on its way.

import { getJson, runPath } from "./api.js";

export const BLOCK = 40;
const MOST_BLOCKS = 12;

export class LaneData {
  constructor(id, client) {
    this.id = id;
    this.client = client; // only this one's lane, or null for all
    this.total = 0;
    this.now = 0;
    this.blocks = new Map();
    this.merges = null;
    this.waiting = null;
  }

  row(index) {
    return this.blocks.get(Math.floor(index / BLOCK))?.rows[index % BLOCK] ?? null;
  }

  forget() {
    this.blocks.clear();
  }

  // Ask for the blocks of these rows in this window, dropping a question that was not answered yet.
  async ask(firstRow, lastRow, window, order, width) {
    this.waiting?.abort();
    const waiting = this.waiting = new AbortController();
    const first = Math.floor(Math.max(0, firstRow) / BLOCK), last = Math.floor(Math.max(0, lastRow) / BLOCK);
    const wanted = [];
    for (let block = first; block <= last; block += 1) wanted.push(this.askBlock(block, window, order, width, waiting.signal));
    await Promise.all(wanted);
    this.forgetFar(first, last);
  }

  async askBlock(block, window, order, width, signal) {
    const rows = { order, first: block * BLOCK, count: BLOCK };
    const lanes = { ...rows, from: window?.from, to: window?.to, width: Math.round(width) };
    const [answer, list] = await Promise.all([
      this.askLanes(lanes, signal),
      this.client === null ? getJson(runPath(this.id, "/clients", rows), signal) : { clients: [] },
    ]);
    this.total = answer.total;
    this.now = answer.now;
    const states = new Map(list.clients.map((row) => [row.client, row]));
    this.blocks.set(block, { rows: answer.clients.map((lane) => this.makeRow(lane, answer, states.get(lane.client))) });
  }

  // One client's lane: the server answers with lanes by place, so it is looked for by its name and number.
  async askLanes(query, signal) {
    if (this.client === null) return getJson(runPath(this.id, "/lanes", query), signal);
    return getJson(runPath(this.id, "/lanes", { ...query, ...this.client }), signal);
  }

  makeRow(lane, answer, state) {
    const merges = answer.merges?.filter(([, client]) => client === lane.client).map(([time]) => time) ?? null;
    return { lane: { ...lane, merges, codes: answer.codes, from: answer.from, to: answer.to }, state: state ?? null };
  }

  forgetFar(first, last) {
    for (const block of this.blocks.keys()) {
      if (this.blocks.size <= MOST_BLOCKS) return;
      if (block < first - 2 || block > last + 2) this.blocks.delete(block);
    }
  }
}
