// Owns tables of the page: a section with a heading and its count, and rows that follow their items, not all at once.
import { byId, h, mark, redraw, Rows, say } from "./dom.js";
import { Controls } from "./steer.js";

const AT_FIRST = 50;
const FURTHER = 50;

// A part of a page. `empty` is what it says with nothing in it: the next command. Before it has been told it does not
// say so: that nothing is there is something to be known.
export class Section {
  constructor(name, title, empty, most = AT_FIRST) {
    this.title = h("span", {}, title);
    this.number = h("span", { class: "number" }, "…");
    this.nothing = h("p", { class: "empty", hidden: true }, empty);
    this.misfit = h("p", { class: "empty", hidden: true });
    this.inside = h("div", { class: "inside", hidden: true });
    this.further = h("button", {
      type: "button",
      class: "further",
      hidden: true,
      on: { click: () => this.showMore() },
    });
    this.all = h("a", { class: "all", hidden: true });
    this.most = most;
    this.element = h(
      "section",
      { "data-section": name, "aria-label": title },
      h("h2", {}, this.title, " ", this.number),
      this.nothing,
      this.misfit,
      this.inside,
      this.further,
      this.all,
    );
  }

  // Of what fits the filter as much as is wanted; `total` is how many there are in all.
  show(items, total, draw) {
    this.again = () => this.show(items, total, draw);
    const busy = items.findLastIndex((item) => this.rows?.isBusy(item)); // it is not taken away from who is at it
    const shown = items.slice(0, Math.max(this.most, busy + 1));
    say(this.number, shown.length === total ? `${total}` : `${shown.length} of ${total}`);
    mark(this.element, "data-number", String(total));
    this.nothing.hidden = items.length > 0 || total > 0;
    this.misfit.hidden = items.length > 0 || total === 0;
    say(this.misfit, byId("filter").value ? "Nothing that fits the filter." : "…"); // … : counted, and not told of yet
    this.inside.hidden = items.length === 0;
    const left = items.length - shown.length;
    this.further.hidden = left === 0;
    say(this.further, `${left} more`);
    draw(shown);
  }

  // Where all of them are, when fewer were given to this section: what is not here may fit as well.
  lead(where, given, total) {
    this.all.hidden = given >= total;
    mark(this.all, "href", where);
    say(this.all, `look at all ${total}`);
  }

  showMore() {
    this.most += FURTHER;
    this.again();
  }
}

// A section that is a table. A column is {label, kind, of, draw}: `of(item)` is what it depends on, `draw` makes nodes
// of that, when it differs. `says(item)` is a text below them, on one line. `about(item)` gives the attributes of a
// row, `deeds(item)` what can be done to it.
export class Table extends Section {
  constructor({ name, title, empty, columns, keyOf = (item) => item.id, about, says = null, deeds = null }) {
    super(name, title, empty);
    this.columns = columns;
    this.keyOf = keyOf;
    this.about = about;
    this.says = says;
    this.deeds = deeds;
    const heads = columns.map(({ label, kind = "" }) => h("th", { scope: "col", class: kind }, label));
    const last = deeds && h("th", { scope: "col", class: "doing" }, h("span", { class: "unseen" }, "Steer"));
    this.table = h("table", {}, h("thead", {}, h("tr", {}, heads, last)));
    this.inside.append(this.table);
    this.rows = new Rows(this.table, keyOf, (item) => this.row(item), this.table.tHead);
  }

  draw(items, total = items.length) {
    this.show(items, total, (shown) => this.rows.show(shown));
  }

  row(item) {
    const cells = this.columns.map(({ label, kind = "" }) =>
      h("td", { class: kind, "data-label": label, dir: kind.includes("wide") && "auto" }),
    );
    const line = h("tr", { class: "facts" }, cells);
    const element = h("tbody", { class: "row", tabindex: -1 }, line);
    const below = this.says && this.below(element);
    const controls = this.deeds && this.controls(item, element, line);
    const show = (found) => {
      for (const [name, value] of Object.entries(this.about(found))) mark(element, name, String(value));
      this.columns.forEach(({ of, draw = (text) => text }, index) => redraw(cells[index], of(found), draw));
      for (const cell of cells) cell.classList.toggle("none", cell.textContent === "-"); // where room is scarce
      if (below) below(this.says(found));
      controls?.show(this.deeds(found));
    };
    return { element, show };
  }

  below(element) {
    const text = h("td", { colspan: this.columns.length });
    const line = h("tr", { class: "says", hidden: true }, h("td"), text);
    element.append(line);
    return (words) => {
      line.hidden = !words;
      say(text, words);
      mark(text, "title", words);
    };
  }

  controls(item, element, line) {
    const span = this.columns.length + 1;
    const open = h("tr", { class: "open", hidden: true });
    const controls = new Controls(this.keyOf(item), (isOpen) => (open.hidden = !isOpen));
    open.append(h("td", { colspan: span }, controls.place));
    line.append(h("td", { class: "doing" }, controls.buttons));
    element.append(open);
    return controls;
  }
}
