// Owns what was spent: by day, and by coder, model, host, label or run.
import { get } from "./api.js";
import { h, say } from "./dom.js";
import { overview } from "./head.js";
import { fits, href } from "./route.js";
import { midnight, money } from "./spent.js";
import { Table } from "./table.js";
import { Tabs } from "./tabs.js";
import { count, exact, rounded, span } from "./words.js";

const EVERY_MS = 15_000;
const WAYS = ["coder", "model", "host", "label", "run"];
const TIMES = { today: 1, "7 days": 7, "30 days": 30 };
const USUAL = "7 days";

export function costPage(here) {
  const days = costTable("days", "By day");
  const parts = costTable("parts", "In parts");
  const times = new Tabs("Since", Object.keys(TIMES));
  const ways = new Tabs("Divided by", WAYS);
  const note = h("p", { class: "empty" });
  const element = h("div", { "data-page": "cost", class: "page" });
  element.append(times.element, note, days.element, ways.element, parts.element);
  const shown = { days: null, parts: null, here };

  const draw = () => {
    const { by, since, text } = shown.here;
    times.show(timeOf(since), (name) => href("cost", { by, since: name, text }));
    ways.show(wayOf(by), (name) => href("cost", { by: name, since, text }));
    if (!shown.days) return;
    drawLines(days, [...shown.days.lines].reverse(), shown.days.total, "");
    drawLines(parts, shown.parts.lines, shown.parts.total, text);
    say(parts.title, `By ${shown.parts.by}`);
    say(note, remarks(shown.days));
  };

  draw();
  return {
    element,
    async look() {
      const { by, since } = shown.here;
      const begins = Array.from({ length: TIMES[timeOf(since)] }, (_, index) => midnight(index)).reverse();
      const from = begins[0].getTime();
      const each = begins.map((day) => `&day=${encodeURIComponent(withOffset(day))}`).join("");
      const [byDay, byPart, status] = await Promise.all([
        get(`/cost?since=${from}&by=day${each}`),
        get(`/cost?since=${from}&by=${wayOf(by)}`),
        get("/status"),
      ]);
      overview(status);
      document.title = "Cost · Fleet";
      if (by !== shown.here.by || since !== shown.here.since) return 0; // another one was asked for meanwhile
      Object.assign(shown, { days: byDay, parts: byPart });
      draw();
      return EVERY_MS;
    },
    turn(there) {
      const before = shown.here;
      shown.here = there;
      draw();
      return before.by !== there.by || before.since !== there.since;
    },
  };
}

const timeOf = (since) => (Object.hasOwn(TIMES, since) ? since : USUAL);
const wayOf = (by) => (WAYS.includes(by) ? by : WAYS[0]);

function drawLines(table, lines, total, text) {
  const most = Math.max(1, ...lines.map((line) => line.cost_microusd ?? 0));
  const named = lines.filter((line) => fits(text, line.name)).map((line) => ({ ...line, most }));
  table.draw(lines.length ? [...named, { ...total, most: 0 }] : []);
  say(table.number, lines.length ? money(total) : "");
}

function remarks({ total, running, since: from }) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return [
    `What ended since ${exact(from).slice(0, 10)}; days are those of ${zone}. `,
    total.unpriced ? `${count(total.unpriced, "session")} did not tell the cost, which is in no sum. ` : "",
    running.sessions ? `Running now, in no sum yet: ${count(running.sessions, "session")}, ${money(running)}.` : "",
  ].join("");
}

function costTable(name, title) {
  return new Table({
    name,
    title,
    empty: "Nothing has ended in this time.",
    keyOf: (line) => (line.most ? `of ${line.name}` : ""), // the sum has the name of no part
    columns: [
      { label: "Name", of: (line) => line.name, kind: "wide" },
      { label: "Share", of: (line) => [line.cost_microusd ?? 0, line.most], draw: bar },
      { label: "Cost", kind: "right", of: (line) => (line.sessions ? money(line) : "-") },
      { label: "Sessions", kind: "right", of: (line) => line.sessions },
      { label: "Input", kind: "right", of: (line) => rounded(line.input_tokens) },
      { label: "Cached", kind: "right", of: (line) => rounded(line.cached_tokens) },
      { label: "Output", kind: "right", of: (line) => rounded(line.output_tokens) },
      { label: "Time", kind: "right", of: (line) => (line.sessions ? span(line.duration_ms) : "-") },
    ],
    about: (line) => ({ "data-cost": line.name }),
  });
}

function bar([cost, most]) {
  return cost > 0 && most > 0 ? h("progress", { max: most, value: cost, "aria-hidden": "true" }) : "";
}

// A moment with its offset from UTC: whoever sums does not know where this is.
function withOffset(day) {
  const minutes = -day.getTimezoneOffset();
  const two = (n) => String(Math.floor(n)).padStart(2, "0");
  const offset = `${minutes < 0 ? "-" : "+"}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
  return `${exact(day.getTime()).replace(" ", "T")}${offset}`;
}
