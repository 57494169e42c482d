// Owns what the ledger says of a task: each event in a line of words, and in full where it is opened.
import { h } from "./dom.js";
import { plainTable } from "./overview.js";
import { ago, span } from "./words.js";

const ENVELOPE = new Set(["at", "by", "kind", "v", "subject", "reason"]);

// The newest first.
export function events(found) {
  const row = ({ seq, event }) => [String(seq), ago(event.at), h("b", {}, event.kind), event.by, what(event)];
  return plainTable(["Seq", "When", "Event", "By", "What"], [...found].reverse().map(row));
}

function what(event) {
  const rest = Object.fromEntries(Object.entries(event).filter(([name]) => !ENVELOPE.has(name)));
  if (!Object.keys(rest).length) return event.reason ?? "";
  const whole = h("pre", { class: "text" }, JSON.stringify(rest, null, 2));
  return h("details", {}, h("summary", {}, gist(event)), whole);
}

// What happened, on one line; of a kind that has no words here, its reason.
function gist(event) {
  switch (event.kind) {
    case "task.submitted":
      return event.task.title;
    case "task.claimed":
      return `${event.session.coder} on ${event.session.worker}, session ${event.session.epoch}`;
    case "session.started":
      return `${event.session}${event.pid ? `, process ${event.pid}` : ""}`;
    case "session.ended":
      return `${event.session}: ${event.outcome}`;
    case "task.settled":
      return `${event.state}: ${event.receipt.reason}`;
    case "task.requeued":
      return `${event.reason}${event.not_before ? `; again in ${span(event.not_before - event.at)}` : ""}`;
    case "task.blocked":
      return `${event.block.kind}: ${event.block.text}`;
    case "task.answered":
      return event.text;
    case "task.commented":
      return event.comment.text;
    case "alert.raised":
      return `${event.alert}: ${event.reason}`;
    case "intent.recorded":
      return `${event.intent.verb} by ${event.intent.by}`;
    case "intent.settled":
      return [event.outcome, event.detail].filter(Boolean).join(": ");
    default:
      return event.reason || event.session || "more";
  }
}
