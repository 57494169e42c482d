// Owns the life of the page: the token, the events, and which page is shown.
import { closeAdd, wireAdd } from "./add.js";
import { dropToken, hasToken, learnWho, me, onRefused, Problem, redeem, setToken, takeCode } from "./api.js";
import { comeBack, leave } from "./back.js";
import { boardPage } from "./board.js";
import { costPage } from "./cost.js";
import { byId, h, put, say } from "./dom.js";
import { Feed } from "./feed.js";
import { connection, isLive, seen, showConnection, tellProblem, unseen } from "./head.js";
import { wireKeys } from "./keys.js";
import { forget, settled } from "./recent.js";
import { refine, route } from "./route.js";
import { Refresher } from "./refresh.js";
import { runPage, runsPage } from "./runs.js";
import { forgetSpent, lookSpent } from "./spent.js";
import { forgetDrafts, onDone } from "./steer.js";
import { taskPage } from "./task.js";
import { tasksPage } from "./tasks.js";
import { tick } from "./words.js";

const NAMES = { board: "Board", tasks: "Tasks", runs: "Runs", cost: "Cost" }; // of those without a title of their own
const PAGES = { board: boardPage, tasks: tasksPage, task: taskPage, runs: runsPage, run: runPage, cost: costPage };
const shown = { page: null, name: "" };
const AGAIN_MS = 2000;

const refresher = new Refresher(async () => {
  const { page } = shown;
  if (!page) return Infinity;
  lookSpent();
  const every = await page.look();
  if (page === shown.page) {
    seen();
    comeBack();
  }
  return every;
}, failed);

let feed = null;

function follow() {
  feed = new Feed(
    (kind, line) => {
      if (kind === "task.settled") settled(line);
      refresher.soon();
    },
    (state, problem) => {
      connection(state, problem);
      if (state === "live") refresher.soon();
    },
  );
  feed.run();
}

// Whether it may be otherwise in a moment.
function failed(problem) {
  if (!(problem instanceof Problem)) throw problem; // a mistake of ours: the console tells where
  const mayPass = problem.status === 0 || problem.status === 429 || problem.status >= 500;
  if (problem.status === 0 && isLive()) feed.again();
  else if (problem.status !== 0 && mayPass) unseen(problem);
  else if (!mayPass && problem.status !== 401) tellProblem(problem);
  return mayPass;
}

// The page that the address names; where it is shown already, it is told what of it is wanted.
function turn(from = "") {
  const here = route();
  const name = `${here.page} ${here.id}`;
  closeAdd();
  tellProblem(null);
  byId("filter").value = here.text;
  for (const link of document.querySelectorAll("[data-nav]")) {
    if (link.dataset.nav === here.page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (name === shown.name) return retell(here);
  leave(from);
  shown.name = name;
  shown.page = PAGES[here.page](here);
  put(byId("main"), NAMES[here.page] && h("h1", { class: "unseen" }, NAMES[here.page]), shown.page.element);
  scrollTo(0, 0);
  if (from && document.activeElement === document.body) byId("main").focus({ preventScroll: true });
  return refresher.anew();
}

// `turn` says whether something else has to be loaded for what is wanted of a page now.
function retell(here) {
  if (shown.page.turn(here)) refresher.anew();
}

// With the code of a link, else with the token that this tab has; else a person is asked for one.
async function comeIn(code) {
  let problem = null;
  if (code) await redeem(code).catch((found) => (problem = found));
  return hasToken() ? begin() : askForToken(problem);
}

async function begin() {
  try {
    await learnWho();
  } catch (problem) {
    if (problem.status === 401) return;
    connection("lost", problem);
    put(byId("token-problem"), problem.message);
    setTimeout(begin, AGAIN_MS);
    return;
  }
  byId("token-form").hidden = true;
  document.body.classList.remove("outside");
  say(byId("who"), `as ${me.name} (${me.role})`);
  feed?.stop();
  shown.name = ""; // another token may see other things
  turn();
  follow();
}

function askForToken(problem) {
  dropToken();
  feed?.stop();
  Object.assign(shown, { page: null, name: "" });
  forget();
  forgetSpent();
  forgetDrafts();
  put(byId("main"));
  connection("refused", problem);
  document.body.classList.add("outside");
  const form = byId("token-form");
  form.hidden = false;
  put(byId("token-problem"), problem?.status === 401 ? problem.message : (problem?.words ?? ""));
  byId("token").focus();
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(byId("token").value);
  byId("token").value = "";
  begin();
});
byId("filter").addEventListener("input", (event) => {
  refine({ text: event.target.value });
  retell(route());
});
addEventListener("hashchange", (event) => {
  const code = takeCode();
  // Another link may be opened where the page was open already.
  if (code) comeIn(code);
  else if (shown.page) turn(new URL(event.oldURL).hash);
});
onRefused(askForToken);
onDone(() => refresher.soon());
wireAdd();
wireKeys();
setInterval(() => {
  tick();
  showConnection();
}, 1000);
comeIn(takeCode());
