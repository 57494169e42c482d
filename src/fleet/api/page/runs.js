// Owns runs: the list of them, and the page of one with what goes on in it and what came of its tasks.
import { at, get } from "./api.js";
import { h, redraw } from "./dom.js";
import { overview } from "./head.js";
import { checked, taskLink, verdict } from "./recent.js";
import { fits, href } from "./route.js";
import { Controls, deedsOf } from "./steer.js";
import { Table } from "./table.js";
import { ago, count, dollars, lasting, now, rounded, span, state } from "./words.js";

const MOST_RUNS = 200;
const MOST_TASKS = 1000;
const WHILE_ACTIVE_MS = 4000;
const AT_REST_MS = 15_000;
const ENDED = ["completed", "failed", "cancelled"];

export function runsPage(here) {
  const table = runTable();
  const element = h("div", { "data-page": "runs", class: "page" }, table.element);
  const shown = { runs: [], text: here.text };
  const draw = () =>
    table.draw(
      shown.runs.filter((run) => fits(shown.text, run.id, run.name, run.state)),
      shown.runs.length,
    );
  return {
    element,
    async look() {
      const [found, status] = await Promise.all([get(`/runs?limit=${MOST_RUNS}`), get("/status")]);
      overview(status);
      document.title = "Runs · Fleet";
      shown.runs = found.runs;
      draw();
      return found.runs.some((run) => !run.over) ? WHILE_ACTIVE_MS : AT_REST_MS;
    },
    turn(there) {
      shown.text = there.text;
      draw();
      return false;
    },
  };
}

function runTable() {
  return new Table({
    name: "runs",
    title: "Runs",
    empty: ["No run yet. Tasks are submitted together with ", h("code", {}, "fleet run SPEC")],
    columns: [
      { label: "State", of: (run) => run.state, draw: (name) => state(name) },
      {
        label: "Run",
        kind: "wide",
        of: (run) => [run.id, run.name],
        draw: ([id, name]) => [h("a", { href: href("run", { id }) }, name), " ", h("code", {}, id)],
      },
      { label: "Progress", of: (run) => [ended(run), run.tasks], draw: progress },
      { label: "Tasks", kind: "wide", of: (run) => run.counts, draw: counts },
      { label: "Began", kind: "right", of: (run) => run.created_at, draw: ago },
      {
        label: "Took",
        kind: "right",
        of: (run) => [run.created_at, run.ended_at],
        draw: ([from, to]) => (to ? span(to - from) : lasting(from)),
      },
    ],
    about: (run) => ({ "data-run": run.id, "data-state": run.state }),
  });
}

export function runPage(here) {
  const { id } = here;
  const head = h("div", { class: "task-head" });
  const controls = new Controls(id);
  const live = liveTable();
  const results = resultTable();
  const parts = [head, controls.buttons, controls.place, live.element, results.element];
  const element = h("article", { "data-page": "run", "data-run": id, class: "page" }, parts);
  const shown = { live: [], tasks: [], run: null, text: here.text };

  const draw = () => {
    if (!shown.run) return;
    live.draw(
      shown.live.filter((one) => fits(shown.text, one.task, one.id, one.title, one.coder, one.worker)),
      shown.live.length,
    );
    results.draw(
      shown.tasks.filter((one) => fits(shown.text, one.task, one.id, one.title, one.state, one.result, one.reason)),
      shown.run.tasks,
    );
  };

  return {
    element,
    async look() {
      const path = at("runs", id);
      const [detail, going, status] = await Promise.all([
        get(`${path}?limit=${MOST_TASKS}`),
        get(`${path}/live`),
        get("/status"),
      ]);
      overview(status);
      const at_ = now();
      const titles = new Map(detail.tasks.map((one) => [one.task, one.title]));
      Object.assign(shown, {
        run: detail.run,
        tasks: detail.tasks,
        live: going.live.map((one) => ({
          ...one,
          title: titles.get(one.task) ?? one.id,
          began: began(one.elapsed_ms, at_),
        })),
      });
      document.title = `${detail.run.name} · Fleet`;
      redraw(head, detail.run, drawHead);
      controls.show(detail.run.state === "active" ? ["stop-run"] : []);
      draw();
      return detail.run.over ? AT_REST_MS : WHILE_ACTIVE_MS;
    },
    turn(there) {
      shown.text = there.text;
      draw();
      return false;
    },
  };
}

function drawHead(run) {
  const labels = Object.entries(run.labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
  return [
    h("p", { class: "trail" }, h("a", { href: href("runs") }, "Runs")),
    h("h1", {}, run.name),
    h(
      "p",
      { class: "facts-line" },
      state(run.state),
      h("code", {}, run.id),
      progress([ended(run), run.tasks]),
      ago(run.created_at),
      labels && h("span", { class: "quiet" }, labels),
    ),
    h(
      "p",
      { class: "facts-line" },
      counts(run.counts),
      run.over &&
        run.state === "active" &&
        h("span", { class: "warn" }, "nothing of it goes on by itself: it waits for a person"),
    ),
  ];
}

function liveTable() {
  return new Table({
    name: "live",
    title: "In progress",
    empty: "Nothing of this run is in progress.",
    keyOf: (one) => one.task,
    columns: [
      { label: "State", of: (one) => one.state, draw: (name) => state(name) },
      {
        label: "Task",
        kind: "wide whole",
        of: (one) => [one.task, one.title],
        draw: ([id, title]) => taskLink(id, title),
      },
      { label: "Coder", of: (one) => (one.model ? `${one.coder}/${one.model}` : one.coder) },
      { label: "Worker", of: (one) => one.worker },
      { label: "For", kind: "right", of: (one) => one.began, draw: lasting },
      { label: "Tokens", kind: "right", of: (one) => rounded(one.tokens) },
      { label: "Cost", kind: "right", of: (one) => dollars(one.cost_microusd) },
    ],
    about: (one) => ({ "data-task": one.task, "data-state": one.state }),
  });
}

function resultTable() {
  return new Table({
    name: "results",
    title: "Tasks",
    empty: "It has no task.",
    keyOf: (one) => one.task,
    columns: [
      { label: "State", of: (one) => one.state, draw: (name) => state(name) },
      { label: "Task", kind: "wide", of: (one) => [one.task, one.title], draw: ([id, title]) => taskLink(id, title) },
      {
        label: "Result",
        of: (one) => [one.result, one.source],
        draw: ([result, source]) => (result ? verdict(result, source) : "-"),
      },
      {
        label: "Checked",
        of: (one) => [one.result === "pass" ? Boolean(one.scorer) : null, one.scorer],
        draw: checked,
      },
      {
        label: "Reason",
        kind: "wide quiet",
        of: (one) => one.reason,
        draw: (text) => h("span", { title: text }, text),
      },
      { label: "Attempts", kind: "right minor", of: (one) => String(one.attempts) },
      { label: "Took", kind: "right", of: (one) => span(one.duration_ms) },
      { label: "Tokens", kind: "right minor", of: (one) => rounded(one.tokens) },
      { label: "Cost", kind: "right", of: (one) => dollars(one.cost_microusd) },
    ],
    about: (one) => ({ "data-task": one.task, "data-state": one.state }),
    deeds: (one) => deedsOf(one.state, one.state === "partial" ? one.scorer : ""),
  });
}

function ended(run) {
  return ENDED.reduce((sum, name) => sum + run.counts[name], 0);
}

function progress([done, all]) {
  return [
    h("progress", { max: Math.max(1, all), value: done, "aria-hidden": "true" }),
    ` ${done}/${count(all, "task")}`,
  ];
}

function counts(found) {
  const some = ["queued", "running", "verifying", "blocked", "completed", "partial", "failed", "cancelled"].filter(
    (name) => found[name],
  );
  return some.map((name) => [state(name, `${found[name]} ${name}`), " "]);
}

// To the second: a moment that is computed anew each time would make every row differ.
function began(elapsed, at_) {
  return Math.round((at_ - elapsed) / 1000) * 1000;
}
