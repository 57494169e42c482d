// Owns what a task is: its fields, what it needs, its terms, and the attempts at it.
import { h, longText } from "./dom.js";
import { href } from "./route.js";
import { ago, dollars, exact, lasting, now, rounded, span, state, tokens } from "./words.js";

export function aboutTask(sessions, task) {
  return [
    task.description && longText(task.description),
    fields(factsOf(task)),
    h(
      "h2",
      {},
      "Attempts ",
      h("span", { class: "number" }, `${task.attempts}, ${task.charged} of ${task.max_attempts} used`),
    ),
    sessions.length ? attempts(sessions) : h("p", { class: "empty" }, "Nothing has run yet."),
    h("h2", {}, "Terms"),
    terms(task.terms),
  ];
}

// Names and values; what has no value is left out.
export function fields(found) {
  const shown = found.filter(
    ([, value]) => value !== null && value !== undefined && value !== "" && value !== false && value.length !== 0,
  );
  return h(
    "dl",
    {},
    shown.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
}

// What is long stands in the last column.
export function plainTable(heads, rows) {
  const head = h(
    "thead",
    {},
    h(
      "tr",
      {},
      heads.map((name) => h("th", { scope: "col" }, name)),
    ),
  );
  const line = (cells) =>
    h(
      "tr",
      { class: "facts" },
      cells.map((cell, index) => h("td", { "data-label": heads[index] }, cell)),
    );
  return h("div", { class: "scroll" }, h("table", {}, head, h("tbody", {}, rows.map(line))));
}

function factsOf(task) {
  const usage = task.usage;
  const inherited = (name) => (task[`${name}_inherited`] ? " (from the settings)" : "");
  return [
    ["coder", `${task.coder}${inherited("coder")}`],
    ["model", task.model && `${task.model}${inherited("model")}`],
    ["priority", `P${task.priority}`],
    ["directory", task.cwd && h("code", {}, task.cwd)],
    ["host", task.host],
    [
      "labels",
      Object.entries(task.labels)
        .map(([name, value]) => `${name}=${value}`)
        .join(", "),
    ],
    ["capabilities", task.capabilities.join(", ")],
    ["needs", task.needs.map((need) => [link(need.id), " ", state(need.state), " "])],
    ["needed by", task.needed_by.map((id) => [link(id), " "])],
    ["skipped for", task.skipped_for && link(task.skipped_for)],
    ["created", [ago(task.created_at), ` by ${task.created_by}`]],
    ["updated", ago(task.updated_at)],
    ["not before", task.not_before && exact(task.not_before)],
    [
      "checked",
      task.verified === null
        ? null
        : task.verified
          ? "yes"
          : h("span", { class: "warn" }, "unverified: its coder's word alone stands for it"),
    ],
    ["waits for a verdict", task.awaits],
    ["raised to a person", task.escalated && "yes"],
    ["restarts", task.restarts || null],
    ["ran for", task.session ? lasting(now() - task.running_ms) : span(task.running_ms)],
    [
      "tokens",
      ["input", "output", "cached"].map((name) => `${rounded(usage[`${name}_tokens`] ?? 0)} ${name}`).join(", "),
    ],
    ["cost", dollars(usage.cost_microusd ?? 0)],
    ["task.json was edited", Object.keys(task.edited).join(", ")],
    ["task.json cannot be used", task.edited_error],
  ];
}

function attempts(sessions) {
  const heads = ["Session", "Kind", "State", "Coder", "Where", "Began", "Took", "Outcome", "Tokens", "Cost"];
  const took = (one) => (one.ended_at && one.started_at ? span(one.ran_ms ?? one.ended_at - one.started_at) : "-");
  const row = (one) => [
    h("code", {}, one.id),
    one.kind ?? "work",
    one.state ?? "starting",
    one.model ? `${one.coder}/${one.model}` : one.coder,
    h("span", { title: one.host }, one.worker),
    ago(one.started_at ?? one.claimed_at),
    took(one),
    one.outcome ?? "-",
    one.ended_at ? tokens(one.usage) : "-",
    one.ended_at ? dollars(one.usage?.cost_microusd ?? 0) : "-",
  ];
  return plainTable(heads, sessions.map(row));
}

function terms(found) {
  const named = Object.entries(found).filter(([, value]) => JSON.stringify(value) !== "{}");
  if (!named.length) return h("p", { class: "empty" }, "None but those of the settings.");
  return fields(
    named.map(([name, value]) => [name, typeof value === "string" ? value : h("code", {}, JSON.stringify(value))]),
  );
}

function link(id) {
  return h("a", { href: href("task", { id }) }, h("code", {}, id));
}
