// Owns what a person can do to a task or a run: each deed asks for a confirmation in its place before it is sent.
import { at, me, post } from "./api.js";
import { h, put } from "./dom.js";

const REASON = { name: "reason", label: "Reason (stands in the ledger)" };
const NOTE = { name: "note", label: "Note (stands in the receipt)" };
const ANSWER = { name: "text", label: "Your answer", required: true, long: true };

const DEEDS = {
  answer: { word: "Answer", path: (id) => at("questions", id, "answer"), field: ANSWER },
  "verify-pass": {
    word: "Pass",
    ask: "It is as it should be.",
    path: (id) => at("tasks", id, "verify"),
    field: NOTE,
    body: { passed: true },
  },
  "verify-fail": {
    word: "Fail",
    ask: "It is not as it should be.",
    path: (id) => at("tasks", id, "verify"),
    field: NOTE,
    body: { passed: false },
  },
  interrupt: {
    word: "Interrupt",
    ask: "End its session? The task then waits for a person; no attempt is used.",
    path: (id) => at("workers", id, "interrupt"),
    field: REASON,
  },
  restart: {
    word: "Restart",
    ask: "Run it again? A live session is ended first.",
    path: (id) => at("workers", id, "restart"),
    field: REASON,
    options: {
      force: "though it passed, has no attempt left, or is unsafe (force)",
      abandon: "give up its session: the host does not answer (abandon)",
    },
  },
  stop: {
    word: "Stop",
    ask: "Cancel it? What needs it is skipped.",
    path: (id) => at("workers", id, "stop"),
    field: REASON,
  },
  "stop-run": {
    word: "Stop",
    ask: "Cancel all of this run that has not ended?",
    path: (id) => at("runs", id, "stop"),
    field: REASON,
  },
};

const OF_STATE = {
  queued: ["stop"],
  running: ["interrupt", "restart", "stop"],
  verifying: ["interrupt", "restart", "stop"],
  blocked: ["restart", "stop"],
  partial: ["restart", "stop"],
  completed: ["restart"],
  failed: ["restart"],
  cancelled: ["restart"],
};

const ASKED = new Set(["question", "permission", "secret", "destructive"]); // an answer is what helps

// What can be done to a task in a state; `kind` says what a person is asked, if one is.
export function deedsOf(state, kind = "") {
  const found = OF_STATE[state] ?? [];
  if (ASKED.has(kind)) return ["answer", ...found];
  return kind === "verify" || kind === "manual" ? ["verify-pass", "verify-fail", ...found] : found;
}

const drafts = new Map(); // what was written and not sent yet: whoever looks elsewhere meanwhile finds it again

// Somebody else may be next.
export function forgetDrafts() {
  drafts.clear();
}

let done = () => {};

// Who is told that something was done.
export function onDone(listener) {
  done = listener;
}

// The buttons for a thing, and the place where a confirmation opens; `opened(isOpen)` is told when it does.
// What stands open, an answer that is waited for, needs no button and is there again when another one was not wanted.
export class Controls {
  constructor(id, opened = () => {}) {
    this.id = id;
    this.opened = opened;
    this.deeds = "";
    this.current = "";
    this.standing = "";
    this.buttons = h("span", { class: "deeds" });
    this.place = h("div", { class: "place", hidden: true });
  }

  show(deeds) {
    const told = me.operates ? deeds.join(" ") : "";
    if (told === this.deeds) return;
    this.deeds = told;
    this.told("");
    put(
      this.buttons,
      told
        .split(" ")
        .filter(Boolean)
        .map((name) => this.button(name)),
    );
    if (this.current && !told.split(" ").includes(this.current)) this.close();
  }

  button(name) {
    const open = (event) => {
      event.stopPropagation();
      this.open(name);
    };
    return h("button", { type: "button", "data-action": name, on: { click: open } }, DEEDS[name].word);
  }

  // What came of a deed, until something else is so.
  told(text) {
    if (this.current || this.place.hidden === !text) return;
    put(this.place, text && h("p", { class: "quiet", role: "status" }, text));
    this.toggle(Boolean(text));
  }

  open(name) {
    this.current = name;
    const form = confirmation(name, this.id, (text) => this.close(text), name === this.standing);
    put(this.place, form);
    this.toggle(true);
    if (name !== this.standing) form.querySelector("input, textarea, button")?.focus();
  }

  stand(name) {
    this.standing = name;
    if (!this.current) this.open(name);
  }

  close(text = "") {
    const was = this.current;
    const isHere = document.activeElement === document.body || this.place.contains(document.activeElement);
    this.current = "";
    this.toggle(false);
    put(this.place);
    if (this.standing && this.standing !== was) this.open(this.standing);
    this.told(text);
    if (isHere) this.place.closest(".row")?.focus({ preventScroll: true });
  }

  toggle(isOpen) {
    this.place.hidden = !isOpen;
    this.opened(isOpen);
  }
}

// The form that confirms a deed; `closed` is told when it is over.
function confirmation(name, id, closed, stands) {
  const deed = DEEDS[name];
  const told = h("p", { class: "told", role: "status" });
  const yes = h(
    "button",
    { type: "submit", class: "strong", "data-confirm-yes": true, "data-action": stands && name },
    deed.word,
  );
  const back = { click: () => closed() };
  const no = !stands && h("button", { type: "button", "data-confirm-no": true, on: back }, "Not now");
  const form = h("form", { "data-confirm": name, class: stands ? "confirm stands" : "confirm" });
  const send = async (event) => {
    event.preventDefault();
    yes.disabled = true;
    put(told, "…");
    try {
      const found = await post(deed.path(id), bodyOf(deed, form));
      drafts.delete(`${name} ${id}`);
      closed(isWish(found) ? "Asked for; its supervisor has yet to do it." : "");
      done();
    } catch (problem) {
      put(told, problem.words);
      yes.disabled = false;
      if (document.activeElement === document.body) yes.focus();
    }
  };
  form.addEventListener("submit", send);
  form.append(
    ...[deed.ask && h("p", {}, deed.ask), field(deed.field, `${name} ${id}`), options(deed), told].filter(Boolean),
  );
  form.append(put(h("p", { class: "row-of-buttons" }), yes, no));
  return form;
}

// What concerns a live session is done by its supervisor, when there is one.
function isWish(found) {
  return Boolean(found.verb || found.stopped?.some((one) => one.verb));
}

function field({ name, label, required = false, long = false }, key) {
  const box = long
    ? h("textarea", { name, required, rows: 1, placeholder: label, dir: "auto", on: { keydown: sendByKey } })
    : h("input", { name, autocomplete: "off", maxlength: 2000 });
  box.value = drafts.get(key) ?? "";
  box.addEventListener("input", () => drafts.set(key, box.value));
  return h("label", {}, h("span", {}, label), box);
}

// Enter alone begins a new line.
function sendByKey(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.form.requestSubmit();
}

function options(deed) {
  const found = Object.entries(deed.options ?? {});
  const box = ([name, label]) => h("label", { class: "tick" }, h("input", { type: "checkbox", name }), label);
  return found.length ? h("details", {}, h("summary", {}, "Override"), found.map(box)) : null;
}

function bodyOf(deed, form) {
  const said = form.elements[deed.field.name].value.trim();
  const ticked = Object.keys(deed.options ?? {}).filter((name) => form.elements[name].checked);
  return {
    ...deed.body,
    ...(said && { [deed.field.name]: said }),
    ...Object.fromEntries(ticked.map((name) => [name, true])),
  };
}
