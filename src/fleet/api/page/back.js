// Owns the way back: what was opened from a list leads back to it, and to the row that it was opened in.
const ways = []; // of each list that led here: its address, and the row
let due = null;

// A page is about to be replaced; `hash` is its address. Where a row of it has the focus, that is what was opened.
export function leave(hash) {
  const row = document.activeElement?.closest("main .row");
  const name = row && ["task", "run"].find((each) => row.dataset[each]);
  due = null;
  if (wayBack() === location.hash) due = ways.pop();
  else if (name) ways.push({ hash, row: `[data-${name}="${CSS.escape(row.dataset[name])}"]` });
  else ways.length = 0; // gone elsewhere
}

// The address of the list; none where nothing was opened from one.
export function wayBack() {
  return ways.at(-1)?.hash ?? "";
}

// A page was drawn: the one who comes back to it stands where they stood.
export function comeBack() {
  const row = due && document.querySelector(`main .row${due.row}`);
  due = null;
  row?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "center" });
}
