// Owns the head of the page: whether it is live, who supervises, how many tasks there are, and what went wrong last.
import { me } from "./api.js";
import { byId, h, mark, put, say } from "./dom.js";
import { href } from "./route.js";
import { count, freeze, now, span, state, SYMBOLS } from "./words.js";

const COUNTED = ["queued", "running", "verifying", "blocked", "completed", "partial", "failed", "cancelled"];
const WORDS = { connecting: "connecting", live: "live", lost: "reconnecting", refused: "not authorised" };
// `stream` is how the events come, `fault` why the last look failed; it is live where both are well.
const known = { stream: "connecting", problem: null, fault: null, state: "connecting", lostAt: 0, seenAt: 0 };

export function connection(found, problem = null) {
  Object.assign(known, { stream: found, problem });
  judge();
}

// What is shown is as it was now.
export function seen() {
  known.seenAt = now();
  if (!known.fault) return;
  known.fault = null;
  judge();
}

// The server is there and cannot say how things stand: then what is shown is old, though the events come.
export function unseen(problem) {
  known.fault = problem;
  judge();
}

export function isLive() {
  return known.stream === "live";
}

function judge() {
  const found = known.stream === "live" && known.fault ? "lost" : known.stream;
  if (found === "lost" && known.state !== "lost") known.lostAt = now();
  known.state = found;
  freeze(found === "live" ? null : known.seenAt || now());
  mark(byId("connection"), "data-state", found);
  mark(document.body, "data-stale", String(found !== "live"));
  showConnection();
}

// Also called every second: how long it is lost, and how old what stands below is.
export function showConnection() {
  const lost = known.state === "lost";
  const why = (known.problem ?? known.fault)?.message ?? "";
  say(byId("connection-word"), WORDS[known.state]);
  say(byId("connection-age"), lost ? `since ${span(now() - known.lostAt)}` : "");
  mark(byId("connection"), "title", why);
  const old = byId("old");
  old.hidden = !lost || !known.seenAt;
  if (!old.hidden) say(old, `Not live (${why}). What you see is from ${span(now() - known.seenAt)} ago.`);
}

// `found` is a board or a status: both count, and name the supervisors.
export function overview(found) {
  const place = byId("counts");
  if (!place.childElementCount) put(place, COUNTED.map(counter));
  for (const name of COUNTED) {
    const number = place.querySelector(`[data-count="${name}"]`);
    say(number.querySelector("b"), String(found.counts[name]));
    number.classList.toggle("none", found.counts[name] === 0);
  }
  supervisors(found.supervisors, Object.keys(found.silent));
  say(byId("home"), found.home);
  byId("add").hidden = !me.operates;
}

function counter(name) {
  const symbol = h("span", { class: "symbol", "aria-hidden": "true" }, SYMBOLS[name]);
  return h(
    "a",
    { href: href("tasks", { state: name }), class: "state", "data-is": name, "data-count": name },
    symbol,
    " ",
    h("b", {}, "0"),
    ` ${name}`,
  );
}

function supervisors(names, silent) {
  const place = byId("supervisor");
  const told = names.map((name) => (silent.includes(name) ? `${name} (no sign of life)` : name)).join(", ");
  if (place.title === told && place.dataset.state) return;
  mark(place, "data-state", names.length > silent.length ? "up" : "none");
  place.title = told;
  if (silent.length) put(place, state("down", `${told}: `), h("code", {}, "fleet doctor"));
  else if (names.length) put(place, state("up", count(names.length, "supervisor")));
  else put(place, state("down", "no supervisor is running: "), h("code", {}, "fleet run"));
}

export function tellProblem(problem) {
  const place = byId("problem");
  place.hidden = problem === null;
  if (problem === null) return;
  const close = h("button", { type: "button", on: { click: () => tellProblem(null) }, "aria-label": "Dismiss" }, "✕");
  const each = problem.problems?.length
    ? h(
        "ul",
        {},
        problem.problems.map((one) => h("li", {}, one)),
      )
    : null;
  put(place, h("p", {}, problem.words), each, close);
}
