// Owns words for people: times, amounts and the symbol of each state, the same as on the command line.
import { h, say } from "./dom.js";

export const SYMBOLS = {
  running: "●",
  verifying: "◍",
  queued: "○",
  blocked: "◐",
  completed: "✓",
  partial: "◑",
  failed: "✕",
  cancelled: "⊘",
  pass: "✓",
  fail: "✕",
  timeout: "✕",
  skip: "⊘",
  active: "●",
  stopped: "⊘",
  up: "✓",
  down: "✕",
  unknown: "?",
  stale: "?",
};

const clock = { ahead: 0, frozen: null };

// The server's clock counts: ages are those of its records, whatever this machine believes.
export function setClock(at) {
  clock.ahead = at - Date.now();
}

export function now() {
  return Date.now() + clock.ahead;
}

// While nothing new is heard, what is said to go on stands still; ages of what has happened grow on.
export function freeze(at) {
  clock.frozen = at;
}

export function span(milliseconds) {
  const seconds = Math.floor(Math.max(0, milliseconds) / 1000);
  const two = (n) => String(n).padStart(2, "0");
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h${two(Math.floor((seconds % 3600) / 60))}m`;
  return `${Math.floor(seconds / 86400)}d${two(Math.floor((seconds % 86400) / 3600))}h`;
}

export function exact(at) {
  const date = new Date(at);
  const local = new Date(at - date.getTimezoneOffset() * 60000).toISOString();
  return `${local.slice(0, 10)} ${local.slice(11, 19)}`;
}

export function dollars(microusd) {
  if (!microusd) return "-";
  return microusd >= 10000 ? `$${(microusd / 1e6).toFixed(2)}` : `$${(microusd / 1e6).toFixed(4)}`;
}

export function rounded(n) {
  if (n < 10_000) return String(n);
  return n < 10_000_000 ? `${Math.floor(n / 1000)}k` : `${Math.floor(n / 1_000_000)}M`;
}

// What a budget of tokens counts: output, and input that came from no cache.
export function tokens(usage) {
  return rounded((usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0));
}

export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1048576 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1048576).toFixed(1)} MiB`;
}

export function count(n, one) {
  return n === 1 ? `1 ${one}` : `${n} ${one}s`;
}

// A state by its symbol and its word; the colour comes from the style sheet.
export function state(name, word = name) {
  const symbol = h("span", { class: "symbol", "aria-hidden": "true" }, SYMBOLS[name] ?? "·");
  return h("span", { class: "state", "data-is": name }, symbol, " ", word);
}

// A moment as an age that grows: `ago`, or `for` how long something goes on.
export function ago(at) {
  return moment(at, "ago");
}

export function lasting(at) {
  return moment(at, "lasting");
}

function moment(at, form) {
  if (at === null || at === undefined) return h("span", { class: "quiet" }, "-");
  const element = h("time", {
    datetime: new Date(at).toISOString(),
    title: exact(at),
    "data-at": at,
    "data-form": form,
  });
  tell(element);
  return element;
}

function tell(element) {
  const at = Number(element.dataset.at);
  if (element.dataset.form === "lasting") return say(element, span((clock.frozen ?? now()) - at));
  const ahead = at - now();
  return say(element, ahead > 0 ? `in ${span(ahead)}` : `${span(-ahead)} ago`);
}

export function tick() {
  for (const element of document.querySelectorAll("time[data-at]")) tell(element);
}
