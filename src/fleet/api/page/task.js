// Owns the page of one task: its head with what can be done to it, and a tab for each thing that is known of it.
import { at, get } from "./api.js";
import { diffPanel } from "./diff.js";
import { h, put, redraw } from "./dom.js";
import { events } from "./events.js";
import { overview } from "./head.js";
import { logPanel } from "./log.js";
import { artifacts, file, receipts, why } from "./panels.js";
import { aboutTask } from "./overview.js";
import { href } from "./route.js";
import { Controls, deedsOf } from "./steer.js";
import { Tabs } from "./tabs.js";
import { state } from "./words.js";

const TABS = {
  overview: { word: "Overview", panel: () => drawn((id) => get(`${at("tasks", id)}/sessions`), aboutTask, whatLasts) },
  log: { word: "Log", panel: logPanel },
  diff: { word: "Diff", panel: diffPanel },
  plan: { word: "Plan", panel: () => fileOf("plan") },
  knowledge: { word: "Knowledge", panel: () => fileOf("knowledge") },
  qa: { word: "Q&A", panel: () => fileOf("qa") },
  stderr: { word: "Stderr", panel: () => fileOf("stderr") },
  events: { word: "Events", panel: () => drawn((id) => get(`${at("tasks", id)}/events`), events) },
  receipts: { word: "Receipts", panel: () => drawn((id) => get(`${at("tasks", id)}/receipts`), receipts) },
  artifacts: { word: "Artifacts", panel: () => drawn(leftBy, artifacts) },
  why: { word: "Why", panel: () => drawn((id) => get(`${at("tasks", id)}/why`), why) },
};
const LIVE = new Set(["running", "verifying"]);
const WHILE_RUNNING_MS = 2500;
const AT_REST_MS = 15_000;
const MOST_BYTES = 1 << 18; // of a file, as often as it is looked at

export function taskPage(here) {
  const { id } = here;
  const head = h("div", { class: "task-head" });
  const controls = new Controls(id);
  const words = Object.fromEntries(Object.entries(TABS).map(([name, { word }]) => [name, word]));
  const tabs = new Tabs("Of this task", Object.keys(TABS), words);
  const place = h("div", { class: "panel" });
  const element = h(
    "article",
    { "data-page": "task", "data-task": id, class: "page" },
    head,
    controls.buttons,
    controls.place,
    tabs.element,
    place,
  );
  const shown = { tab: "", panel: null };

  const open = (wanted) => {
    shown.tab = wanted in TABS ? wanted : "overview";
    shown.panel = TABS[shown.tab].panel();
    put(place, h("div", { "data-panel": shown.tab }, shown.panel.element));
    tabs.show(shown.tab, (name) => href("task", { id, tab: name }));
  };

  open(here.tab);
  return {
    element,
    async look() {
      const { panel } = shown;
      const [task, status] = await Promise.all([get(at("tasks", id)), get("/status")]);
      overview(status);
      document.title = `${task.title} · Fleet`;
      redraw(head, headOf(task), drawHead);
      controls.show(deedsOf(task.state, task.question_kind ?? task.awaits ?? ""));
      await panel.look(task);
      return LIVE.has(task.state) ? WHILE_RUNNING_MS : AT_REST_MS;
    },
    turn(there) {
      if ((there.tab || "overview") === shown.tab) return false;
      open(there.tab);
      return true;
    },
  };
}

// What the head shows of a task, and nothing that grows by itself.
function headOf({ id, title, run, state: name, reason, question, question_kind: kind }) {
  return { id, title, run, state: name, reason, question, question_kind: kind };
}

function drawHead(task) {
  const question =
    task.question && h("p", { class: "card card-text" }, h("b", {}, `${task.question_kind}: `), task.question);
  return [
    h(
      "p",
      { class: "trail" },
      h("a", { href: href("board") }, "Board"),
      task.run && [" / ", h("a", { href: href("run", { id: task.run }) }, task.run)],
    ),
    h("h1", {}, task.title),
    h(
      "p",
      { class: "facts-line" },
      state(task.state),
      h("code", {}, task.id),
      !question && h("span", { class: "quiet" }, task.reason),
    ),
    question,
  ];
}

// A panel that is loaded, and drawn anew only when what it shows differs: what was opened or marked in it stays so.
function drawn(load, draw, shows = (found) => found) {
  const element = h("div", {}, h("p", { class: "empty" }, "…"));
  let before = "";
  return {
    element,
    async look(task) {
      const found = await load(task.id);
      const told = JSON.stringify(shows(found, task));
      if (told === before) return;
      before = told;
      put(element, draw(found, task));
    },
  };
}

// A task without what grows by itself.
function whatLasts(sessions, task) {
  return [sessions, { ...task, elapsed_ms: 0, idle_ms: 0, running_ms: 0, events: 0 }];
}

function fileOf(what) {
  return drawn((id) => get(`${at("tasks", id)}/files/${what}?limit=${MOST_BYTES}`), file);
}

function leftBy(id) {
  const path = at("tasks", id);
  return Promise.all([get(`${path}/artifacts`), get(`${path}/files`)]);
}
