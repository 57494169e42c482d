// Owns what needs a person: questions with a box for the answer, results to judge, what failed or waits, ill hosts.
import { me } from "./api.js";
import { h, mark, redraw, Rows, say } from "./dom.js";
import { fits, href } from "./route.js";
import { Controls, deedsOf } from "./steer.js";
import { Section } from "./table.js";
import { ago, state } from "./words.js";

const LOOKS = { verify: "partial", failed: "failed", stale: "stale", host: "down", queue: "down" };
const ORDER = { question: 0, permission: 0, secret: 0, destructive: 0, verify: 1, host: 3, failed: 4 }; // all others: 2
const AT_FIRST = 10; // so that what runs is still on the first screen
const MOST_HOSTS = 5;
const LONG = 200; // characters
const STATES = { verify: "partial", failed: "failed", stale: "running" };

export class Needs {
  constructor() {
    this.section = new Section("needs-you", "Needs you", "Nothing needs you.", AT_FIRST);
    this.element = this.section.element;
    const list = h("ul", { class: "cards" });
    this.section.inside.append(list);
    this.rows = new Rows(list, (item) => `${item.kind} ${item.id}`, card);
    this.section.rows = this.rows;
  }

  draw(board, machines, queue, text) {
    const place = (each) => ORDER[each.kind] ?? 2;
    const all = [...silent(queue), ...board.needs_you, ...ill(machines)].sort((a, b) => place(a) - place(b));
    const shown = all.filter((each) => fits(text, each.id, each.title, each.kind, each.text));
    this.section.show(shown, all.length, (some) => this.rows.show(some));
    return all.length;
  }
}

// An outside queue that does not answer: what is queued there is not known, which is not the same as nothing.
function silent(queue) {
  return queue?.error
    ? [{ ...about("queue", "the outside queue fails", queue.error, queue.since), kind: "queue" }]
    : [];
}

// Hosts of which the last probe says that they are not well; many of them are one thing to look at, not many.
// One that was never probed says nothing, and is not ill.
function ill(machines) {
  const fault = machines.api_fault && about("provider", "the provider of machines", machines.api_fault, null);
  const found = machines.machines.filter((each) => each.healthy === false);
  if (found.length <= MOST_HOSTS) return [fault, ...found.map(host)].filter(Boolean);
  const since = Math.max(...found.map((each) => each.since ?? 0));
  const names = found
    .slice(0, MOST_HOSTS)
    .map((each) => each.name)
    .join(", ");
  const title = `${found.length} hosts are not well`;
  return [
    fault,
    about("hosts", title, `${names} and ${found.length - MOST_HOSTS} more, first under Machines`, since || null),
  ].filter(Boolean);
}

function host(each) {
  return about(
    each.name,
    `host ${each.name}`,
    [each.reason, each.detail].filter(Boolean).join(": "),
    each.since ?? each.probed_at,
  );
}

function about(id, title, text, at) {
  return { id, title, kind: "host", text, asked_at: at, asked_by: "" };
}

function card(item) {
  const ofHost = item.kind === "host" || item.kind === "queue";
  const [what, since] = [h("span", { class: "card-about" }), h("span")];
  const head = h("div", { class: "card-head" }, what, since);
  const text = h("p", { class: "card-text" });
  const controls = new Controls(item.id);
  const element = h(
    "li",
    { class: "row card", tabindex: -1, "data-kind": item.kind },
    head,
    text,
    controls.place,
    controls.buttons,
  );
  mark(element, ofHost ? "data-host" : "data-task", item.id);
  const show = (found) => {
    redraw(what, [found.kind, found.title, found.id, found.asked_by], titled);
    redraw(since, found.asked_at, ago);
    say(text, found.text);
    if (found.text.length > LONG) mark(text, "tabindex", "0"); // it may have to be scrolled
    else text.removeAttribute("tabindex");
    if (ofHost || !me.operates) return;
    const deeds = deedsOf(STATES[found.kind] ?? "blocked", found.kind);
    controls.show(deeds.filter((name) => name !== "answer"));
    if (deeds.includes("answer")) controls.stand("answer");
  };
  return { element, show };
}

function titled([kind, title, id, asker]) {
  const ofHost = kind === "host" || kind === "queue";
  return [
    state(LOOKS[kind] ?? "blocked", kind),
    ofHost ? h("b", {}, title) : h("a", { href: href("task", { id }) }, title),
    !ofHost && h("code", {}, id),
    asker && h("span", { class: "quiet" }, asker),
  ];
}
