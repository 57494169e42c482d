// Owns when the page is looked at anew: soon after an event, a few times a second at most, never while nobody sees it.

const GAP_MS = 400;
const AFTER_FAILURE_MS = 3000;
const now = () => performance.now();

export class Refresher {
  // `look()` loads and draws, and gives the milliseconds after which it is to be done again without any event;
  // `failed(problem)` says whether trying again may help.
  constructor(look, failed) {
    this.look = look;
    this.failed = failed;
    this.busy = false;
    this.wanted = false;
    this.timer = 0;
    this.ended = -Infinity;
    this.cost = 0;
    this.every = Infinity;
    document.addEventListener("visibilitychange", () => document.hidden || this.soon());
    setInterval(() => now() - this.ended > this.every && this.soon(), 1000);
  }

  soon() {
    this.wanted = true;
    if (this.busy || this.timer || document.hidden) return;
    // A server that takes long is asked less often, so that looking is never most of its work.
    const wait = Math.max(0, this.ended + Math.max(GAP_MS, this.cost * 3) - now());
    this.timer = setTimeout(() => this.run(), wait);
  }

  // Another page: what is being loaded for the one before does not hold it up.
  anew() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.every = Infinity;
    this.run();
  }

  async run() {
    const look = this.look;
    const began = now();
    this.timer = 0;
    this.wanted = false;
    this.busy = true;
    try {
      this.every = (await look()) ?? Infinity;
    } catch (problem) {
      this.every = this.failed(problem) ? AFTER_FAILURE_MS : Infinity;
    } finally {
      this.busy = false;
      this.ended = now();
      this.cost = this.ended - began;
    }
    if (this.wanted) this.soon();
  }
}
