// The lanes that a page has: asked for in blocks of rows, kept until they are replaced, so that scrolling shows what is
// known while the rest is on its way.

import { getJson, runPath } from "./api.js";

export const BLOCK = 40;
const MOST_BLOCKS = 12;

export class LaneData {
  // only: null for all clients, or the question for the lane of one, such as {order: "number", first: 7, count: 1}.
  constructor(id, only) {
    this.id = id;
    this.only = only;
    this.total = 0;
    this.now = 0;
    this.blocks = new Map();
    this.waiting = null;
  }

  row(index) {
    return this.blocks.get(Math.floor(index / BLOCK))?.[index % BLOCK] ?? null;
  }

  forget() {
    this.blocks.clear();
  }

  // Ask for the blocks of these rows in this window (null: the whole run); a question not answered yet is dropped.
  async ask(firstRow, lastRow, window, order, width) {
    this.waiting?.abort();
    const { signal } = this.waiting = new AbortController();
    const first = Math.floor(firstRow / BLOCK), last = Math.max(first, Math.floor(lastRow / BLOCK));
    const blocks = Array.from({ length: last - first + 1 }, (_, place) => first + place);
    await Promise.all(blocks.map((block) => this.askBlock(block, window, order, width, signal)));
    for (const block of this.blocks.keys()) {
      if (this.blocks.size > MOST_BLOCKS && (block < first - 2 || block > last + 2)) this.blocks.delete(block);
    }
  }

  async askBlock(block, window, order, width, signal) {
    const rows = this.only ?? { order, first: block * BLOCK, count: BLOCK };
    const query = { ...rows, from: window?.from, to: window?.to, width: Math.round(width) };
    const [answer, list] = await Promise.all([
      getJson(runPath(this.id, "/lanes", query), signal), getJson(runPath(this.id, "/clients", rows), signal),
    ]);
    const states = new Map(list.clients.map((row) => [row.client, row]));
    const merges = new Map();
    for (const [time, client] of answer.merges ?? []) {
      if (!merges.has(client)) merges.set(client, []);
      merges.get(client).push(time);
    }
    this.total = this.only ? answer.clients.length : answer.total;
    this.now = answer.now;
    this.blocks.set(block, answer.clients.map((lane) => ({
      lane: { ...lane, merges: merges.get(lane.client) ?? [], codes: answer.codes, from: answer.from, to: answer.to },
      state: states.get(lane.client) ?? null,
    })));
  }
}
