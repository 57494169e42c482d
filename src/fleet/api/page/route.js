// Owns the address: which page is shown, and the filters, all in the fragment so that a link leads back to them.

const PAGES = new Set(["board", "tasks", "task", "runs", "run", "cost"]);

const FILTERS = ["text", "state", "by", "since"];

// {page, id, tab} and the filters. What makes no sense leads to the board.
export function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [page = "board", id = "", tab = ""] = path.split("/").map(decoded);
  const filters = new URLSearchParams(query);
  return {
    page: PAGES.has(page || "board") ? page || "board" : "board",
    id,
    tab,
    ...Object.fromEntries(FILTERS.map((name) => [name, filters.get(name) ?? ""])),
  };
}

export function href(page, { id = "", tab = "", ...wanted } = {}) {
  const path = [page === "board" ? "" : page, id, tab].filter(Boolean).map(encodeURIComponent).join("/");
  const filters = new URLSearchParams();
  for (const name of FILTERS) if (wanted[name]) filters.set(name, wanted[name]);
  return `#/${path}${filters.size ? `?${filters}` : ""}`;
}

export function go(page, where) {
  location.hash = href(page, where);
}

// Another filter is no step to go back over.
export function refine(changes) {
  const here = { ...route(), ...changes };
  history.replaceState(null, "", href(here.page, here));
}

// Whether the words of a filter are all to be found in some texts, as `fleet top` does it.
export function fits(text, ...texts) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const all = texts.map((each) => String(each ?? "").toLowerCase());
  return words.every((word) => all.some((each) => each.includes(word)));
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
