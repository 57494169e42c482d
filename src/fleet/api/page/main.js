// Shows the board as `fleet top` has it, and asks for it again after every event.
const found = new URLSearchParams(location.hash.slice(1)).get("token");
if (found) {
  sessionStorage.setItem("fleet.token", found);
  history.replaceState(null, "", "/");
}

const at = (id) => document.getElementById(id);

async function ask(path) {
  const answer = await fetch(path, { headers: { authorization: `Bearer ${sessionStorage.getItem("fleet.token")}` } });
  if (!answer.ok) throw Object.assign(new Error((await answer.json()).detail), { status: answer.status });
  return answer;
}

async function draw() {
  const board = await (await ask("/v1/fleet/board")).json();
  at("board").textContent = JSON.stringify(board, null, 2);
}

async function follow() {
  const reader = (await ask("/v1/fleet/events")).body.getReader();
  await draw();
  at("connection").dataset.state = "live";
  at("connection").textContent = "";
  while (!(await reader.read()).done) await draw();
}

async function live() {
  at("token-form").hidden = Boolean(sessionStorage.getItem("fleet.token"));
  while (at("token-form").hidden) {
    await follow().catch((problem) => {
      at("connection").textContent = problem.message;
      at("token-form").hidden = problem.status !== 401;
    });
    at("connection").dataset.state = "lost";
    await new Promise((done) => setTimeout(done, 1000));
  }
}

at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("fleet.token", at("token").value);
  live();
});
live();
