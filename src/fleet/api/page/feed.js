// Owns the stream of events: follows it from its last id on, and says whether what is shown is live.
import { ask, Problem } from "./api.js";

const SILENCE_MS = 15_000; // the server gives a sign of life every 5 seconds
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
const NEWEST = 60;
const BEGINNING = "0"; // of a ledger with nothing in it yet

export class Feed {
  // `told(kind, line)` gets each event, `changed(state, problem)` is told live or lost.
  constructor(told, changed) {
    this.told = told;
    this.changed = changed;
    this.position = null;
    this.pause = FIRST_PAUSE_MS;
    this.ended = false;
  }

  async run() {
    while (!this.ended) {
      try {
        if (this.position === null) await this.catchUp();
        await this.follow("/events", { "last-event-id": this.position });
        this.lose(new Problem(0, { detail: "the server has ended the stream" }));
      } catch (problem) {
        this.lose(problem);
        if (!(problem instanceof Problem)) throw problem; // a mistake of ours: the console tells where
      }
      if (!this.ended) await this.rest();
    }
  }

  // Ends the connection there is; it is opened anew at once, after the last event that was seen.
  again() {
    this.pause = FIRST_PAUSE_MS;
    this.abort?.abort();
    this.wake?.();
  }

  stop() {
    this.ended = true;
    this.again();
  }

  lose(problem) {
    if (this.ended) return;
    if (problem.status === 409) this.position = null; // another ledger: begin anew
    this.changed("lost", problem);
  }

  rest() {
    const milliseconds = this.pause * (0.75 + Math.random() / 2);
    this.pause = Math.min(LONGEST_PAUSE_MS, this.pause * 2);
    return new Promise((resolve) => {
      this.wake = resolve;
      setTimeout(resolve, milliseconds);
    });
  }

  // The newest outcomes; a frame with an id alone says that all of them were told, and up to where was read.
  async catchUp() {
    await this.follow(`/events?newest=${NEWEST}&kind=task.settled`, {}, (frame) => frame.id !== null && !frame.data);
  }

  async follow(path, headers, isEnough = () => false) {
    this.abort = new AbortController();
    const watch = { timer: 0 };
    try {
      this.listen(watch);
      const answer = await ask(path, { headers, signal: this.abort.signal });
      if (headers["last-event-id"]) {
        this.pause = FIRST_PAUSE_MS;
        this.changed("live");
      }
      for await (const frame of frames(answer.body, () => this.listen(watch))) {
        this.take(frame);
        if (isEnough(frame)) return;
      }
    } finally {
      clearTimeout(watch.timer);
      this.abort.abort();
    }
  }

  listen(watch) {
    clearTimeout(watch.timer);
    watch.timer = setTimeout(() => this.abort.abort(), SILENCE_MS);
  }

  take(frame) {
    if (frame.kind === "stream.dropped") return; // it ends, and is taken up again after the last id
    if (frame.data) this.told(frame.kind, JSON.parse(frame.data));
    if (frame.id !== null) this.position = frame.id || BEGINNING; // last: what was not dealt with is asked for again
  }
}

// The frames of a stream of server-sent events, as they come. `heard` is told of every sign of life.
async function* frames(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(brokenOff);
      if (done) return;
      heard();
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) yield frame(part);
    }
  } finally {
    reader.cancel().catch(() => {}); // it may have broken off already
  }
}

function brokenOff() {
  throw new Problem(0, { detail: "the connection broke off" });
}

function frame(text) {
  const found = { id: null, kind: "", data: "" };
  for (const line of text.split("\n")) {
    const colon = line.indexOf(": ");
    const [name, value] = [line.slice(0, colon), line.slice(colon + 2)];
    if (name === "id") found.id = value;
    else if (name === "event") found.kind = value;
    else if (name === "data") found.data += value;
  }
  return found;
}
