// Owns requests: the token, the role that it has, and the problems that the server tells.
import { setClock } from "./words.js";

const PLACE = "fleet.token";
const BASE = "/v1/fleet";
const PATIENCE_MS = 20_000;
const DOWNLOAD_MS = 1_800_000;

// What went wrong, in the server's words (RFC 9457); status 0: it did not answer.
export class Problem extends Error {
  constructor(status, { detail = "", title = "", hint = "", problems = [] } = {}) {
    super(detail || title || `the server answered ${status}`);
    this.status = status;
    this.hint = hint;
    this.problems = problems;
  }

  // What went wrong, and what to do about it.
  get words() {
    return [this.message, this.hint].filter(Boolean).join(". ");
  }
}

// Who shows the token, as the server knows it.
export const me = { name: "", role: "", operates: false };

let refused = () => {};

// Who is told that the token is good no longer.
export function onRefused(listener) {
  refused = listener;
}

// The code of a link, which is good once; it leaves the address at once. Browsers keep addresses: no token is in one.
export function takeCode() {
  const found = new URLSearchParams(location.hash.slice(1)).get("code");
  if (found) history.replaceState(null, "", `${location.pathname}#/`);
  return found;
}

// The token that a code stands for, for this tab.
export async function redeem(code) {
  const headers = { "content-type": "application/json" };
  const answer = await ask("/page/token", { base: "", method: "POST", headers, body: JSON.stringify({ code }) });
  setToken((await read(answer)).token);
}

export function hasToken() {
  return sessionStorage.getItem(PLACE) !== null;
}

export function setToken(token) {
  sessionStorage.setItem(PLACE, token.trim());
}

export function dropToken() {
  sessionStorage.removeItem(PLACE);
}

export async function learnWho() {
  const answer = await ask("/me");
  const found = await read(answer);
  setClock(Date.parse(answer.headers.get("date")) || Date.now());
  Object.assign(me, found, { operates: found.role !== "read" });
  document.body.dataset.role = found.role;
}

export async function ask(path, { base = BASE, method = "GET", headers = {}, body, signal } = {}) {
  const token = sessionStorage.getItem(PLACE) ?? "";
  let answer;
  try {
    answer = await fetch(base + path, {
      method,
      body,
      cache: "no-store",
      credentials: "omit",
      headers: { authorization: `Bearer ${token}`, ...headers },
      signal: signal ?? AbortSignal.timeout(PATIENCE_MS),
    });
  } catch (error) {
    throw new Problem(0, { detail: "the server does not answer", hint: String(error.message ?? error) });
  }
  if (answer.ok) return answer;
  const problem = new Problem(answer.status, await answer.json().catch(() => ({})));
  if (answer.status === 401) refused(problem);
  throw problem;
}

export async function get(path) {
  return read(await ask(path));
}

// A change. A key of its own: should the answer be lost on the way, a second sending does nothing twice.
export async function post(path, body) {
  const headers = { "content-type": "application/json", "idempotency-key": crypto.randomUUID?.() ?? random() };
  return read(await ask(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

// What may be large takes its time.
export async function blob(path) {
  return (await ask(path, { signal: AbortSignal.timeout(DOWNLOAD_MS) })).blob();
}

export function at(...parts) {
  return parts.map((part) => `/${encodeURIComponent(part)}`).join("");
}

async function read(answer) {
  try {
    return await answer.json();
  } catch {
    throw new Problem(0, { detail: "the answer of the server broke off" });
  }
}

// Away from this machine, and without TLS, browsers give no randomUUID.
function random() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
