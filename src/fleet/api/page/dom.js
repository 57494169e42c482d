// Owns how elements are made: text goes in as text alone, so nothing that an agent wrote can become markup.
import { harmless } from "./harmless.js";

const MOST_SHOWN = 20_000; // characters
const READ = new Set(["title", "aria-label", "placeholder"]); // attributes that somebody reads

// An element. Properties: `on` holds listeners by name; true and false set or leave out an attribute.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : READ.has(name) ? harmless(String(value)) : String(value));
    }
  }
  element.append(...flat(children));
  return element;
}

export function put(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}

// A text that may be very long: its beginning, and the rest when it is asked for.
export function longText(text) {
  const place = h("pre", { class: "text" }, text.slice(0, MOST_SHOWN));
  if (text.length <= MOST_SHOWN) return place;
  const all = () => {
    put(place, text);
    button.remove();
  };
  const button = h("button", { type: "button", on: { click: all } }, `Show all ${text.length} characters`);
  return [place, button];
}

export function byId(id) {
  return document.getElementById(id);
}

// Writes only what differs: a text that is set anew is read out again, and costs a layout.
export function say(element, text) {
  const shown = typeof text === "string" ? harmless(text) : text;
  if (element.textContent !== shown) element.textContent = shown;
}

export function mark(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

const drawn = new WeakMap();

// What stands in an element, drawn anew only when what it depends on differs: what is pressed meanwhile stays.
export function redraw(element, value, draw) {
  const told = JSON.stringify(value);
  if (drawn.get(element) === told) return;
  drawn.set(element, told);
  put(element, draw(value));
}

function flat(children) {
  const there = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  return there.map((child) => (typeof child === "string" ? harmless(child) : child));
}

// A list that follows its items: an element is made once for each key, and is touched only when its item differs.
// `make(item)` gives {element, show(item)}; `head` stays before them all.
export class Rows {
  constructor(parent, keyOf, make, head = null) {
    this.parent = parent;
    this.keyOf = keyOf;
    this.make = make;
    this.head = head;
    this.known = new Map();
  }

  show(given) {
    const focused = document.activeElement;
    this.leave(new Set(given.map(this.keyOf)));
    const items = this.parent.contains(focused) && focused.matches("input, textarea") ? this.asTheyStand(given) : given;
    let place = this.head ? this.head.nextElementSibling : this.parent.firstElementChild;
    for (const item of items) {
      const row = this.row(item);
      if (row.element === place) place = place.nextElementSibling;
      else this.parent.insertBefore(row.element, place);
    }
    // What was moved has lost the focus: whoever writes in it goes on.
    if (focused !== document.activeElement && this.parent.contains(focused)) focused.focus({ preventScroll: true });
  }

  // While somebody writes in one of them, what is new comes last: nothing moves under their hands.
  asTheyStand(items) {
    const order = new Map([...this.parent.children].map((element, index) => [element, index]));
    const place = (item) => order.get(this.known.get(this.keyOf(item))?.element) ?? Infinity;
    return [...items].sort((a, b) => place(a) - place(b) || 0);
  }

  // Whether somebody is at the row of an item.
  isBusy(item) {
    return this.known.get(this.keyOf(item))?.element.contains(document.activeElement) ?? false;
  }

  // What is gone goes first: then nothing that stays has to move, and lose the focus.
  leave(keys) {
    for (const [key, row] of this.known) {
      if (keys.has(key)) continue;
      row.element.remove();
      this.known.delete(key);
    }
  }

  row(item) {
    const key = this.keyOf(item);
    const told = JSON.stringify(item);
    const row = this.known.get(key) ?? { ...this.make(item), told: "" };
    this.known.set(key, row);
    if (row.told !== told) {
      row.told = told;
      row.show(item);
    }
    return row;
  }
}
