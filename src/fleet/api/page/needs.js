// Owns what needs a person: questions with a box for the answer, results to judge, what failed or was interrupted, ill hosts.
import { me } from "./api.js";
import { h, mark, put, Rows } from "./dom.js";
import { fits, href } from "./route.js";
import { Controls, deedsOf } from "./steer.js";
import { Section } from "./table.js";
import { ago, state } from "./words.js";

const LOOKS = { verify: "partial", failed: "failed", stale: "stale", host: "down" };
const STATES = { verify: "partial", failed: "failed", stale: "running" };

export class Needs {
  constructor() {
    this.section = new Section("needs-you", "Needs you", "Nothing needs you.");
    this.element = this.section.element;
    const list = h("ul", { class: "cards" });
    this.section.inside.append(list);
    this.rows = new Rows(list, (item) => `${item.kind} ${item.id}`, card);
  }

  draw(board, machines, text) {
    const all = [...board.needs_you, ...ill(machines)];
    const shown = all.filter((each) => fits(text, each.id, each.title, each.kind, each.text));
    this.section.show(shown, all.length, (some) => this.rows.show(some));
    return all.length;
  }
}

// Hosts of which the last probe says that they are not well. One that was never probed says nothing, and is not ill.
function ill(machines) {
  const found = machines.machines.filter((each) => each.healthy === false);
  return found.map((each) => ({
    id: each.name,
    title: `host ${each.name}`,
    kind: "host",
    text: [each.reason, each.detail].filter(Boolean).join(": "),
    asked_at: each.since ?? each.probed_at,
    asked_by: "",
  }));
}

function card(item) {
  const ofHost = item.kind === "host";
  const head = h("div", { class: "card-head" });
  const text = h("p", { class: "card-text" });
  const controls = new Controls(item.id);
  const element = h("li", { class: "row card", tabindex: -1, "data-kind": item.kind }, head, text, controls.buttons, controls.place);
  mark(element, ofHost ? "data-host" : "data-task", item.id);
  const show = (found) => {
    const title = ofHost ? h("b", {}, found.title) : h("a", { href: href("task", { id: found.id }) }, found.title);
    const who = found.asked_by && h("span", { class: "quiet" }, found.asked_by);
    put(head, state(LOOKS[found.kind] ?? "blocked", found.kind), title, !ofHost && h("code", {}, found.id), who, ago(found.asked_at));
    put(text, found.text);
    if (ofHost || !me.operates) return;
    const deeds = deedsOf(STATES[found.kind] ?? "blocked", found.kind);
    controls.show(deeds.filter((name) => name !== "answer"));
    if (deeds.includes("answer")) controls.stand("answer");
  };
  return { element, show };
}
