// Owns what was spent today, in the head of every page; and the words for amounts that may not be known.
import { get, Problem } from "./api.js";
import { byId, mark, say } from "./dom.js";
import { count, dollars } from "./words.js";

const EVERY_MS = 10_000;
const known = { at: -Infinity, busy: false };

// The beginning of a day here, so many days ago.
export function midnight(daysAgo = 0) {
  const today = new Date();
  return new Date(today.getFullYear(), today.getMonth(), today.getDate() - daysAgo);
}

// What is known of a cost: all of it, that it is more than so much, or nothing.
export function money(line) {
  if (line.cost_microusd === null) return "unknown";
  const told = line.cost_microusd ? dollars(line.cost_microusd) : "$0";
  return line.unpriced ? `> ${told}` : told;
}

// Nothing waits for it. Where it cannot be had it is said not to be known; that the server is away is told elsewhere.
export async function lookSpent() {
  if (known.busy || performance.now() - known.at < EVERY_MS) return;
  known.busy = true;
  try {
    show(await get(`/cost?since=${midnight().getTime()}&by=coder`));
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem; // a mistake of ours: the console tells where
    say(byId("spent"), "today unknown");
  } finally {
    Object.assign(known, { at: performance.now(), busy: false });
  }
}

export function forgetSpent() {
  known.at = -Infinity;
  byId("spent").hidden = true;
}

function show({ total, running, lines }) {
  const place = byId("spent");
  const untold = total.unpriced ? [`${count(total.unpriced, "session")} did not tell the cost`] : [];
  place.hidden = false;
  say(place, `today ${money(total)}${running.sessions ? `, running ${money(running)}` : ""}`);
  mark(place, "title", [...lines.map((line) => `${line.name}: ${money(line)}`), ...untold].join("\n"));
}
