// Owns the list of all tasks, or of those in a state.
import { get } from "./api.js";
import { h } from "./dom.js";
import { overview } from "./head.js";
import { taskLink } from "./recent.js";
import { fits, href } from "./route.js";
import { deedsOf } from "./steer.js";
import { Table } from "./table.js";
import { Tabs } from "./tabs.js";
import { lasting, state } from "./words.js";

const MOST = 1000;
const EVERY_MS = 15_000;
const URGENT = new Set(["queued", "running", "verifying", "blocked"]); // of these what is most urgent comes first
const STATES = ["queued", "running", "verifying", "blocked", "completed", "partial", "failed", "cancelled"];

export function tasksPage(here) {
  const table = taskTable();
  const states = new Tabs("States", ["", ...STATES], { "": "all" });
  const note = h(
    "p",
    { class: "empty", hidden: true },
    `Of more than ${MOST} not all are shown: of what has ended the newest, else the most urgent.`,
  );
  const element = h("div", { "data-page": "tasks", class: "page" }, states.element, note, table.element);
  const shown = { tasks: [], total: 0, here };

  const draw = () => {
    const fit = shown.tasks.filter((one) =>
      fits(shown.here.text, one.id, one.title, one.coder, one.model, one.reason, one.cwd),
    );
    table.draw(fit, shown.total);
  };
  const drawStates = () =>
    states.show(shown.here.state, (name) => href("tasks", { state: name, text: shown.here.text }));

  drawStates();
  return {
    element,
    async look() {
      const wanted = shown.here.state;
      const only = wanted ? `&status=${encodeURIComponent(wanted)}` : "";
      const order = URGENT.has(wanted) ? "" : "&newest=true";
      const [tasks, status] = await Promise.all([get(`/tasks?limit=${MOST}${only}${order}`), get("/status")]);
      overview(status);
      document.title = "Tasks · Fleet";
      if (wanted !== shown.here.state) return 0; // another one was asked for meanwhile
      shown.tasks = tasks;
      shown.total = wanted ? (status.counts[wanted] ?? 0) : status.total;
      note.hidden = shown.total <= MOST;
      draw();
      return EVERY_MS;
    },
    // Whether it has to be loaded anew.
    turn(there) {
      const before = shown.here;
      shown.here = there;
      drawStates();
      draw();
      return before.state !== there.state;
    },
  };
}

function taskTable() {
  return new Table({
    name: "tasks",
    title: "Tasks",
    empty: ["There is none. A task is put in the queue with ", h("code", {}, 'fleet add "..."')],
    columns: [
      { label: "State", of: (one) => one.state, draw: (name) => state(name) },
      { label: "Priority", kind: "right", of: (one) => `P${one.priority}` },
      { label: "Task", kind: "wide", of: (one) => [one.id, one.title], draw: ([id, title]) => taskLink(id, title) },
      { label: "Coder", of: (one) => (one.model ? `${one.coder}/${one.model}` : one.coder) },
      { label: "For", kind: "right", of: (one) => one.started_at, draw: lasting },
      {
        label: "Reason",
        kind: "wide quiet",
        of: (one) => one.reason,
        draw: (text) => h("span", { title: text }, text),
      },
    ],
    about: (one) => ({ "data-task": one.id, "data-state": one.state }),
    deeds: (one) => deedsOf(one.state),
  });
}
