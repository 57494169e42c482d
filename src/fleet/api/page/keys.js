// Owns the keyboard: the same keys as in `fleet top`.
import { closeAdd, openAdd } from "./add.js";
import { wayBack } from "./back.js";
import { byId } from "./dom.js";
import { go, route } from "./route.js";

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  Enter: open,
  "/": () => byId("filter").focus(),
  "?": () => byId("help").showModal(),
  a: openAdd,
  g: () => go("board"),
};

export function wireKeys() {
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the fragment is the address of a page here
    byId("main").focus();
  });
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    if (event.key === "Escape") return back(event);
    if (isWriting(event.target) || (event.key === "Enter" && event.target.closest("a, button, summary"))) return;
    const does = KEYS[event.key];
    if (!does || !byId("token-form").hidden) return;
    event.preventDefault();
    does();
  });
}

// Out of what was opened last: a field, a form, a page.
function back(event) {
  const open = document.activeElement?.closest("form[data-confirm]")?.querySelector("[data-confirm-no]");
  if (open) return open.click();
  if (isWriting(event.target)) return event.target.blur();
  if (closeAdd() || route().page === "board") return;
  if (wayBack()) location.hash = wayBack();
  else go("board");
}

function move(step) {
  const rows = [...document.querySelectorAll("main .row")].filter((row) => row.offsetParent !== null);
  if (!rows.length) return;
  const at = rows.indexOf(chosen());
  const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function open() {
  chosen()?.querySelector("a[href^='#/']")?.click();
}

function chosen() {
  return document.activeElement?.closest(".row") ?? null;
}

function isWriting(element) {
  return element.matches?.("input:not([type=checkbox]), textarea, select") ?? false;
}
