// Owns the first screen: what needs a person, what runs, what is queued, what came out, and the machines.
import { get } from "./api.js";
import { h, put } from "./dom.js";
import { overview } from "./head.js";
import { inWords } from "./log.js";
import { drawMachines, machineTable } from "./machines.js";
import { Needs } from "./needs.js";
import { drawRecent, recentTable, taskLink } from "./recent.js";
import { fits, href } from "./route.js";
import { deedsOf } from "./steer.js";
import { Table } from "./table.js";
import { ago, count, dollars, lasting, now, rounded, setClock, state } from "./words.js";

const WHILE_RUNNING_MS = 4000; // what a session uses is not in the ledger
const AT_REST_MS = 15_000;
const AROUND_MS = 10_000;

export function boardPage(here) {
  const needs = new Needs();
  const running = runningTable();
  const queued = queuedTable();
  const recent = recentTable();
  const machines = machineTable();
  const parts = [needs, running, queued, recent, machines];
  const element = h(
    "div",
    { "data-page": "board", class: "page" },
    parts.map((part) => part.element),
  );
  const shown = { board: null, words: new Map(), machines: null, queue: null, aroundAt: 0, text: here.text };

  const draw = () => {
    if (!shown.board) return;
    const { board, text } = shown;
    const number = needs.draw(board, shown.machines, shown.queue, text);
    document.title = number ? `(${number}) Fleet` : "Fleet";
    const { counts } = board;
    put(running.nothing, "Nothing runs. ", nextStep(board));
    running.draw(
      board.running
        .map((one) => ({ ...one, words: shown.words.get(one.session) ?? "" }))
        .filter((one) => fits(text, one.id, one.title, one.coder, one.model, where(one), one.words)),
      counts.running + counts.verifying,
    );
    queued.draw(
      readyFirst(board).filter((one) => fits(text, one.id, one.title, one.coder)),
      counts.queued,
    );
    queued.lead(href("tasks", { state: "queued", text }), board.queued.length, counts.queued);
    running.lead(href("tasks", { state: "running", text }), board.running.length, counts.running);
    drawRecent(recent, text);
    drawMachines(machines, shown, text);
  };

  return {
    element,
    async look() {
      const [board, words] = await Promise.all([get("/board"), get("/words"), lookAround(shown)]);
      shown.board = board;
      shown.words = new Map(words.map(({ session, said }) => [session, said.map((one) => inWords(one)).join("  ")]));
      setClock(shown.board.at);
      overview(shown.board);
      draw();
      return shown.board.running.length ? WHILE_RUNNING_MS : AT_REST_MS;
    },
    turn(there) {
      shown.text = there.text;
      draw();
      return false;
    },
  };
}

// What would make something run.
function nextStep({ counts, supervisors }) {
  if (counts.queued && !supervisors.length)
    return ["What is queued waits for a supervisor: ", h("code", {}, "fleet run")];
  return counts.queued ? "" : ["Put something in the queue: ", h("code", {}, 'fleet add "..."')];
}

// The machines, which are many, and the outside queue change with time, not with every event.
async function lookAround(shown) {
  if (shown.machines && performance.now() - shown.aroundAt < AROUND_MS) return;
  const [machines, status] = await Promise.all([get("/machines"), get("/status")]);
  Object.assign(shown, { machines, queue: status.queue, aroundAt: performance.now() });
}

function runningTable() {
  return new Table({
    name: "running",
    title: "Running",
    empty: "",
    columns: [
      { label: "State", of: (one) => [one.stale ? "stale" : one.state], draw: ([name]) => state(name) },
      {
        label: "Task",
        kind: "wide whole",
        of: (one) => [one.id, one.title],
        draw: ([id, title]) => taskLink(id, title),
      },
      { label: "Coder", kind: "minor", of: (one) => (one.model ? `${one.coder}/${one.model}` : one.coder) },
      {
        label: "Where",
        kind: "cut",
        of: (one) => [one.worker, one.host],
        draw: ([worker, host]) => h("span", { title: host }, where({ worker, host })),
      },
      { label: "For", kind: "right", of: (one) => one.started_at, draw: lasting },
      { label: "Idle", kind: "right", of: (one) => one.started_at + one.elapsed_ms - one.idle_ms, draw: lasting },
      { label: "Context", kind: "right", of: (one) => [one.peak_context_tokens, one.context_window], draw: context },
      { label: "Tokens", kind: "right minor", of: (one) => rounded(one.tokens) },
      { label: "Cost", kind: "right", of: (one) => dollars(one.cost_microusd) },
    ],
    about: (one) => ({ "data-task": one.id, "data-state": one.state }),
    says: (one) => one.words,
    deeds: (one) => deedsOf(one.state),
  });
}

function queuedTable() {
  return new Table({
    name: "queued",
    title: "Queued",
    empty: ["Nothing waits. Put something in the queue: ", h("code", {}, 'fleet add "..."')],
    columns: [
      { label: "Priority", kind: "right", of: (one) => `P${one.priority}` },
      {
        label: "Task",
        kind: "wide whole",
        of: (one) => [one.id, one.title],
        draw: ([id, title]) => taskLink(id, title),
      },
      { label: "Coder", of: (one) => one.coder },
      { label: "Waits for", of: (one) => [one.needs, one.not_before, one.attended], draw: waits },
    ],
    about: (one) => ({ "data-task": one.id, "data-state": "queued" }),
    deeds: () => deedsOf("queued"),
  });
}

function context([peak, window]) {
  if (!window) return "-";
  const full = Math.floor(((peak ?? 0) * 100) / window);
  const meter = h("meter", { min: 0, max: 100, high: 75, value: full, "aria-hidden": "true" });
  return [meter, h("span", { class: "share" }, `${full}%`)];
}

// Without a supervisor no slot comes free, however long one waits.
function waits([needs, notBefore, attended]) {
  if (needs) return count(needs, "task");
  if (notBefore) return ago(notBefore);
  return attended ? "a slot" : h("span", { class: "warn" }, "a supervisor: none is at work");
}

// A moment that is past holds nothing back.
function readyFirst({ queued, supervisors, silent }) {
  const attended = supervisors.some((name) => !(name in silent));
  const held = queued.map((one) => ({ ...one, attended, not_before: one.not_before > now() ? one.not_before : null }));
  const later = (one) => Number(one.needs > 0 || one.not_before !== null);
  return held.sort((a, b) => later(a) - later(b));
}

function where(one) {
  return one.host.startsWith("local@") ? one.worker : one.host;
}
