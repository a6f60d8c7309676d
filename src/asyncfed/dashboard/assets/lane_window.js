// The part of a run's time that lanes show: all of it, the latest seconds, or a part that somebody chose.

const SMALLEST = 1e-6; // seconds

export class LaneWindow {
  constructor() {
    this.chosen = null; // {from, to}: a part that stays; null: the whole run
    this.latest = null; // seconds: the last so many, whatever comes
    this.now = 1e-9;
  }

  get range() {
    if (this.latest !== null) return { from: Math.max(0, this.now - this.latest), to: Math.max(this.now, this.latest) };
    return this.chosen ?? { from: 0, to: this.now };
  }

  // What to ask the server for; null for the whole run, so that a growing run is answered up to its own present.
  get question() {
    return this.latest !== null || this.chosen ? this.range : null;
  }

  get isWhole() {
    return this.latest === null && this.chosen === null;
  }

  showAll() {
    this.chosen = this.latest = null;
  }

  showLatest() {
    this.chosen = null;
    this.latest = Math.max(this.now / 10, SMALLEST);
  }

  choose(from, to) {
    const size = Math.min(Math.max(to - from, SMALLEST), this.now);
    const begin = Math.min(Math.max(0, from), this.now - size);
    this.latest = null;
    this.chosen = size >= this.now ? null : { from: begin, to: begin + size };
  }

  // Zoom by a factor around a place, a share of the width between 0 and 1.
  zoom(factor, place = 0.5) {
    const { from, to } = this.range, size = (to - from) * factor, middle = from + (to - from) * place;
    this.choose(middle - size * place, middle + size * (1 - place));
  }

  pan(share) {
    const { from, to } = this.range, step = (to - from) * share;
    if (!this.isWhole) this.choose(from + step, to + step);
  }
}
