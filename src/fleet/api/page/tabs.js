// Owns rows of links of which one is where the person is. They are made once: who walks along them keeps the place.
import { h, mark, put } from "./dom.js";

export class Tabs {
  // `names` are those of the links, `words` what they say where that is something else.
  constructor(label, names, words = {}) {
    this.links = names.map((name) => [name, h("a", { "data-tab": name }, words[name] ?? name)]);
    this.element = put(
      h("nav", { class: "tabs", "aria-label": label }),
      this.links.map(([, link]) => link),
    );
  }

  // `where(name)` is the address that a link leads to.
  show(here, where) {
    for (const [name, link] of this.links) {
      mark(link, "href", where(name));
      if (name === here) mark(link, "aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }
}
