// Owns the tabs of a task that are read: its files, receipts and artifacts, and why it is where it is.
import { at } from "./api.js";
import { h, longText } from "./dom.js";
import { beginning, download, downloadPieces } from "./download.js";
import { fields, plainTable } from "./overview.js";
import { verdict } from "./recent.js";
import { href } from "./route.js";
import { ago, dollars, exact, size, span, state, tokens } from "./words.js";

export function file(found) {
  if (found.text === null) return h("p", { class: "empty" }, "None yet; it will be ", h("code", {}, found.file));
  if (!found.text) return h("p", { class: "empty" }, "It is empty: ", h("code", {}, found.file));
  return h("div", {}, found.left_out > 0 && rest(found), longText(found.text));
}

function rest({ task, file: whole, left_out: more }) {
  const path = whole.split(`/${task}/`).pop();
  const told = `Too long to be shown whole: this is its beginning, ${size(more)} more are not shown. `;
  return h("p", { class: "empty" }, told, downloadPieces(bytesOf(task, path), path.split("/").pop()));
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

// `kept` is evidence, by its checksum; `files` lie in the directory of the task: more, or larger, than what is kept.
export function artifacts([kept, files], task) {
  const known = new Set(kept.filter((one) => one.place === "artifacts").map((one) => `artifacts/${one.path}`));
  const others = files.filter((one) => one.path.startsWith("artifacts/") && !known.has(one.path));
  const heads = ["Kind", "Path", "Size", "sha256", "Content"];
  return [
    kept.length > 0 && plainTable(heads, kept.map((one) => evidence(one, task))),
    kept.length === 0 && h("p", { class: "empty" }, ...nothing(task)),
    others.length > 0 && [
      h("h2", {}, task.receipt ? "Not kept " : "So far ", h("span", { class: "number" }, String(others.length))),
      h("p", { class: "empty" }, ...lying(task)),
      plainTable(["Path", "Size", "Content"], others.map((one) => unkept(one, task))),
    ],
  ];
}

function lying({ id, receipt }) {
  if (!receipt) return ["They become evidence when it ends."];
  const link = h("a", { href: href("task", { id, tab: "receipts" }) }, "its receipt");
  return ["Too large, or too many, or written since: ", link, " tells. They lie where its agent left them."];
}

function nothing({ id, receipt }) {
  if (!receipt) return ["It has left nothing as evidence yet."];
  const link = h("a", { href: href("task", { id, tab: "receipts" }) }, "its receipt");
  return ["It has left nothing that was kept as evidence; of what was too large, ", link, " tells."];
}

function evidence(one, task) {
  const name = one.path.split("/").pop() || one.kind;
  return [
    one.kind,
    h("code", {}, one.path),
    size(one.size),
    h("code", { title: one.sha256 }, one.sha256.slice(0, 12)),
    one.kept_at === null
      ? h("span", { class: "bad" }, "its content is gone")
      : download(`${at("tasks", task.id)}/artifacts/${one.sha256}`, name),
  ];
}

function unkept(one, task) {
  const path = bytesOf(task.id, one.path);
  const name = one.path.split("/").pop();
  return [h("code", {}, one.path), size(one.size), [downloadPieces(path, name, one.size), beginning(path)]];
}

function bytesOf(id, path) {
  return `${at("tasks", id)}/files/bytes?path=${encodeURIComponent(path)}&`;
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
