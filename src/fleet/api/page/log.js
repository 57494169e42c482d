// Owns the log of a task as it grows: what the agent said, in the words of `fleet logs`.
import { ask, at, get } from "./api.js";
import { h, put } from "./dom.js";
import { downloadPieces } from "./download.js";
import { exact, size } from "./words.js";

const FIRST_BYTES = 200_000; // of the end, at the first look
const MOST_BYTES = 1 << 20;
const MOST_LINES = 2000;
const NEAR_END = 40; // pixels: who looks at the end stays at the end

export function logPanel() {
  const lines = h("pre", { class: "text log", tabindex: 0, "aria-label": "Log" });
  const nothing = h("p", { class: "empty", hidden: true }, "Nothing was said yet.");
  const before = h("p", { class: "empty", hidden: true });
  const element = h("div", {}, nothing, before, lines);
  const reading = { offset: null, rest: "", decoder: new TextDecoder(), session: "", tools: new Map() };
  return {
    element,
    async look(task) {
      const path = `${at("tasks", task.id)}/log`;
      if (reading.offset === null) {
        await begin(path, reading);
        if (reading.isCut) tellBefore(before, path, task.id, reading.offset);
      }
      for (;;) {
        const bytes = await (await ask(`${path}/bytes?offset=${reading.offset}&limit=${MOST_BYTES}`)).arrayBuffer();
        reading.offset += bytes.byteLength;
        append(lines, linesOf(reading, bytes));
        if (bytes.byteLength < MOST_BYTES) break;
      }
      nothing.hidden = lines.childElementCount > 0;
      lines.hidden = !nothing.hidden;
    },
  };
}

// Near the end of what there is; what the first record lost of its beginning is left out.
async function begin(path, reading) {
  const whole = (await get(path)).size ?? 0;
  reading.offset = Math.max(0, whole - FIRST_BYTES);
  reading.isCut = reading.offset > 0;
}

function tellBefore(place, path, id, offset) {
  place.hidden = false;
  const whole = downloadPieces(`${path}/bytes?`, `${id}.jsonl`);
  put(place, `${size(offset)} before this are not shown. All of it: `, whole);
}

function linesOf(reading, bytes) {
  const parts = (reading.rest + reading.decoder.decode(bytes, { stream: true })).split("\n");
  reading.rest = parts.pop();
  if (reading.isCut && parts.length) {
    reading.isCut = false;
    parts.shift();
  }
  return parts.slice(-MOST_LINES).flatMap((line) => told(reading, line));
}

function append(place, lines) {
  const follows = place.scrollHeight - place.scrollTop - place.clientHeight < NEAR_END;
  place.append(...lines);
  while (place.childElementCount > MOST_LINES) place.firstElementChild.remove();
  if (follows) place.scrollTop = place.scrollHeight;
}

function told(reading, line) {
  const record = parsed(line);
  if (record === null) return [h("div", {}, line)];
  const found = [];
  if (record.session !== reading.session) {
    reading.session = record.session;
    found.push(h("div", { class: "quiet" }, `--- ${record.session}  ${exact(record.at)}`));
  }
  const words = record.said ? inWords(record.said, reading.tools) : (record.event ?? "").replaceAll("_", " ");
  if (words) {
    const kind = record.said?.kind ?? "event";
    found.push(
      h("div", { "data-said": kind }, h("span", { class: "quiet" }, exact(record.at).slice(11)), `  ${words}`),
    );
  }
  return found;
}

function parsed(line) {
  try {
    const found = JSON.parse(line);
    return typeof found === "object" && found !== null && typeof found.at === "number" ? found : null;
  } catch {
    return null; // shown as it stands
  }
}

// Nothing for what only counts, and for calls that went well.
export function inWords(said, tools = new Map()) {
  switch (said.kind) {
    case "started":
      return `started${said.model ? ` with ${said.model}` : ""}${said.version ? `, version ${said.version}` : ""}`;
    case "text":
      return `${said.subagent ? "(subagent) " : ""}${said.text.trim()}`;
    case "thinking":
      return `(thinking) ${said.text.trim()}`;
    case "tool_started":
      tools.set(said.id, said.name);
      return `${said.subagent ? "  " : ""}> ${said.name}  ${said.input ?? ""}`.trimEnd();
    case "tool_ended":
      return said.ok ? "" : `! ${tools.get(said.id) ?? "a tool"} failed  ${said.output ?? ""}`.trimEnd();
    case "retrying":
      return `! tries again${said.after_ms ? ` in ${said.after_ms / 1000} s` : ""}: ${said.reason}`;
    case "limited":
      return said.rejected
        ? `! the plan's limit (${said.window}) is reached${said.resets_at ? ` until ${exact(said.resets_at)}` : ""}`
        : "";
    case "denied":
      return `! was not allowed to use ${said.tool}${said.reason ? `: ${said.reason}` : ""}`;
    case "compacted":
      return "shortened its conversation";
    case "notice":
      return `note: ${said.text}`;
    case "turn_ended":
      return said.ok ? "ended its turn" : `! ended its turn: ${said.reason || "it failed"}`;
    default:
      return "";
  }
}
