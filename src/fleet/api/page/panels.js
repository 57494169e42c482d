// Owns the tabs of a task that are read: its files, receipts and artifacts, and why it is where it is.
import { at, blob } from "./api.js";
import { h, longText, put } from "./dom.js";
import { fields, plainTable } from "./overview.js";
import { verdict } from "./recent.js";
import { href } from "./route.js";
import { ago, dollars, exact, size, span, state, tokens } from "./words.js";

const KEPT_MS = 60_000; // a download has begun by then

export function file(found) {
  if (found.text === null) return h("p", { class: "empty" }, "None yet; it will be ", h("code", {}, found.file));
  if (!found.text) return h("p", { class: "empty" }, "It is empty: ", h("code", {}, found.file));
  const rest = found.left_out ? h("p", { class: "empty" }, `Its last ${size(found.left_out)} are left out.`) : "";
  return h("div", {}, longText(found.text), rest);
}

export function receipts(found) {
  if (!found.length) return h("p", { class: "empty" }, "No verdict yet.");
  return h("ul", { class: "cards" }, [...found].reverse().map(receipt));
}

function receipt(one) {
  const scores = (one.scores ?? []).map((score) => [
    state(score.passed ? "pass" : "fail"),
    score.kind,
    score.value.toFixed(2),
    (score.evidence ?? []).map((text) => h("div", { class: "evidence" }, text)),
  ]);
  return h(
    "li",
    { class: "sheet", "data-result": one.result },
    h(
      "p",
      { class: "facts-line" },
      verdict(one.result, one.source),
      h("code", {}, one.id),
      ago(one.at),
      one.final ? h("b", {}, "final") : h("span", { class: "quiet" }, "not the one that counts"),
    ),
    h("p", {}, one.reason),
    fields([
      [
        "verdict by",
        one.verdict_by === "nobody" && one.result === "pass"
          ? h("span", { class: "warn" }, "nobody: unverified")
          : one.verdict_by,
      ],
      ["attempt", one.attempt ? String(one.attempt) : null],
      ["coder", one.coder && [one.coder, one.model].filter(Boolean).join("/")],
      ["host", one.host],
      ["exit code", one.exit_code === undefined || one.exit_code === null ? null : String(one.exit_code)],
      ["took", span(one.duration_ms ?? 0)],
      ["used", spent(one.usage)],
      ["verifier used", one.verify_ms ? `${span(one.verify_ms)}, ${spent(one.verify_usage)}` : null],
      ["score", one.score === undefined || one.score === null ? null : one.score.toFixed(2)],
      ["waits for", one.awaits?.kind],
      ["supersedes", one.supersedes && h("code", {}, one.supersedes)],
      ["commits", one.commit_after && h("code", {}, `${one.commit_before ?? ""}..${one.commit_after}`)],
      ["evidence", (one.evidence ?? []).map((text) => h("div", { class: "evidence" }, text))],
      [
        "artifacts",
        (one.artifacts ?? []).map((ref) => h("div", {}, `${ref.kind} `, h("code", {}, ref.path), ` ${size(ref.size)}`)),
      ],
    ]),
    scores.length > 0 && plainTable(["Score", "Scorer", "Value", "Evidence"], scores),
  );
}

function spent(usage) {
  return `${tokens(usage)} tokens, ${dollars(usage?.cost_microusd)}`;
}

export function artifacts(found, task) {
  if (!found.length) return h("p", { class: "empty" }, "It has left nothing.");
  const row = (one) => [
    one.kind,
    h("code", {}, one.path),
    size(one.size),
    h("code", { title: one.sha256 }, one.sha256.slice(0, 12)),
    one.kept_at === null ? h("span", { class: "bad" }, "its content is gone") : download(task.id, one),
  ];
  return plainTable(["Kind", "Path", "Size", "sha256", ""], found.map(row));
}

// A link cannot carry the token, so the bytes are fetched and handed over; they are never shown as a page.
function download(id, one) {
  const told = h("span", { class: "bad", role: "status" });
  const fetchIt = async () => {
    put(told);
    try {
      const url = URL.createObjectURL(await blob(`${at("tasks", id)}/artifacts/${one.sha256}`));
      h("a", { href: url, download: one.path.split("/").pop() || one.kind }).click();
      setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
    } catch (problem) {
      put(told, ` ${problem.message}`);
    }
  };
  return [h("button", { type: "button", "data-action": "download", on: { click: fetchIt } }, "Download"), told];
}

export function why(found) {
  return [
    h("p", { class: "said" }, found.summary),
    fields([
      ["what may be done", h("code", {}, found.action)],
      ["since", ago(found.since)],
      [
        "by what evidence",
        `event ${found.evidence.seq}, ${found.evidence.kind}, by ${found.evidence.by}, ${exact(found.evidence.at)}`,
      ],
      ["reason", found.evidence.reason],
      ["what it is", found.classification],
      [
        "waits for",
        found.waits_for.map((need) => [
          h("a", { href: href("task", { id: need.id }) }, h("code", {}, need.id)),
          " ",
          state(need.state),
          " ",
        ]),
      ],
      ["workers", found.workers.map((each) => h("div", {}, `${each.worker}: ${each.reason}`))],
      ["asked for, not done yet", found.asked.join(", ")],
      ["next at", found.next_at && exact(found.next_at)],
      ["paused coder", found.paused_coder],
      ["attempts", `${found.attempts_used} used, ${found.attempts_left} left`],
      ["safe to run twice", found.retry_safe ? "yes" : "no"],
      ["last outcome", found.last && `${found.last.outcome} (${found.last.session}): ${found.last.remedy}`],
    ]),
  ];
}
