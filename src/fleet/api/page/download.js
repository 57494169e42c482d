// Owns what is taken away: a link cannot carry the token, so bytes are fetched and handed over, never shown as a page.
import { ask, blob } from "./api.js";
import { h, longText, put } from "./dom.js";
import { size } from "./words.js";

const KEPT_MS = 60_000; // a download has begun by then
const PIECE = 1 << 20;
const BEGINNING = 1 << 16;

// Of a file that one answer holds.
export function download(path, name) {
  return button(name, () => blob(path));
}

// Of a file that may have any size, by a route that gives pieces of it: `path` ends so that a parameter can be added.
export function downloadPieces(path, name, whole = 0) {
  return button(name, async (told) => {
    const pieces = [];
    for (let offset = 0; ; offset += PIECE) {
      const piece = await (await ask(`${path}offset=${offset}&limit=${PIECE}`)).arrayBuffer();
      pieces.push(piece);
      if (piece.byteLength < PIECE) return new Blob(pieces);
      put(told, ` ${size(offset + PIECE)}${whole ? ` of ${size(whole)}` : ""}`);
    }
  });
}

// Its first words, when they are asked for.
export function beginning(path) {
  const place = h("div");
  const look = async () => {
    try {
      const bytes = await (await ask(`${path}offset=0&limit=${BEGINNING}`)).arrayBuffer();
      put(place, longText(new TextDecoder().decode(bytes, { stream: true })));
    } catch (problem) {
      put(place, h("span", { class: "bad" }, problem.message));
    }
  };
  const opened = (event) => event.target.open && !place.childElementCount && look();
  return h("details", { on: { toggle: opened } }, h("summary", {}, "Its beginning"), place);
}

function button(name, load) {
  const told = h("span", { class: "quiet", role: "status" });
  const fetchIt = async () => {
    press.disabled = true;
    put(told, " …");
    try {
      const url = URL.createObjectURL(await load(told));
      h("a", { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
      put(told);
    } catch (problem) {
      put(told, h("span", { class: "bad" }, ` ${problem.message}`));
    } finally {
      press.disabled = false;
    }
  };
  const press = h("button", { type: "button", "data-action": "download", on: { click: fetchIt } }, "Download");
  return [press, told];
}
