// Owns the tab with what a task changed in its worktree. Its machine is asked for it, seldom, while it is seen.
import { at, get, Problem } from "./api.js";
import { h, put } from "./dom.js";

const AGAIN_MS = 15_000;
const MOST_LINES = 5000;
const KINDS = { "+": "added", "-": "removed", "@": "place" };

export function diffPanel() {
  const element = h("div", {}, h("p", { class: "empty" }, "…"));
  const shown = { text: null, at: -Infinity };
  return {
    element,
    async look(task) {
      if (performance.now() - shown.at < AGAIN_MS) return;
      const found = await asked(task.id);
      shown.at = performance.now();
      if (found.diff === shown.text && !found.problem) return;
      shown.text = found.diff;
      put(element, found.problem ? refused(found.problem) : drawn(found.diff, task.id));
    },
  };
}

// That it has no worktree, or that its machine is out of reach, is an answer too: the server is there and gives it.
async function asked(id) {
  try {
    return await get(`${at("tasks", id)}/diff`);
  } catch (problem) {
    if (problem instanceof Problem && problem.status !== 401) return { diff: null, problem };
    throw problem;
  }
}

function refused(problem) {
  return h("p", { class: "empty" }, problem.words);
}

function drawn(text, id) {
  if (!text) return h("p", { class: "empty" }, "It has changed nothing.");
  const lines = text.replace(/\n$/, "").split("\n");
  const more = lines.length - MOST_LINES;
  return [
    h("pre", { class: "text diff" }, lines.slice(0, MOST_LINES).map(line)),
    more > 0 && h("p", { class: "quiet" }, `${more} more lines: `, h("code", {}, `fleet task ${id} diff`)),
  ];
}

function line(text) {
  const heading = text.startsWith("+++ ") || text.startsWith("--- ") || text.startsWith("diff ");
  return h("span", { "data-line": heading ? "file" : (KINDS[text[0]] ?? "same") }, `${text}\n`);
}
