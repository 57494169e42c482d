// Owns recent outcomes: the newest verdicts, as the ledger tells them.
import { h } from "./dom.js";
import { fits, href } from "./route.js";
import { Table } from "./table.js";
import { ago, dollars, span, state, tokens } from "./words.js";

const MOST = 200;
const known = new Map(); // by task: of each its last verdict, the newest last

// A `task.settled` of the feed.
export function settled({ about, event }) {
  const { receipt } = event;
  known.delete(receipt.task);
  known.set(receipt.task, {
    id: receipt.task,
    title: about?.title ?? receipt.task,
    state: event.state,
    result: receipt.result,
    source: receipt.source ?? "",
    reason: receipt.reason,
    verified: receipt.result === "pass" ? Boolean(receipt.scorer) : null,
    scorer: receipt.scorer ?? "",
    usage: receipt.usage ?? {},
    duration_ms: receipt.duration_ms ?? 0,
    at: event.at,
  });
  if (known.size > MOST) known.delete(known.keys().next().value);
}

export function forget() {
  known.clear();
}

export function recentTable() {
  return new Table({
    name: "recent",
    title: "Recent outcomes",
    empty: "Nothing has ended yet.",
    columns: [
      { label: "Result", of: (one) => [one.result, one.source], draw: ([result, source]) => verdict(result, source) },
      { label: "Task", kind: "wide", of: (one) => [one.id, one.title], draw: ([id, title]) => taskLink(id, title) },
      { label: "Checked", of: (one) => [one.verified, one.scorer], draw: checked },
      {
        label: "Reason",
        kind: "wide quiet",
        of: (one) => one.reason,
        draw: (text) => h("span", { title: text }, text),
      },
      { label: "Took", kind: "right", of: (one) => (one.duration_ms ? span(one.duration_ms) : "-") },
      {
        label: "Tokens",
        kind: "right minor",
        of: (one) => tokens(one.usage),
      },
      { label: "Cost", kind: "right", of: (one) => dollars(one.usage.cost_microusd ?? 0) },
      { label: "Ended", kind: "right", of: (one) => one.at, draw: ago },
    ],
    about: (one) => ({ "data-task": one.id, "data-state": one.state, "data-result": one.result }),
  });
}

export function drawRecent(table, text) {
  const all = [...known.values()].reverse();
  table.draw(
    all.filter((one) => fits(text, one.id, one.title, one.result, one.source, one.reason)),
    all.length,
  );
}

export function taskLink(id, title) {
  return [h("a", { href: href("task", { id }), title }, title), " ", h("code", {}, id)];
}

// The result, and who failed.
export function verdict(result, source) {
  return state(result, source ? `${result} (${source})` : result);
}

// A pass on the worker's own word alone is said to be that.
export function checked([verified, scorer]) {
  if (verified === null) return scorer || h("span", { class: "quiet" }, "-");
  return verified ? scorer : h("span", { class: "warn" }, "unverified");
}
