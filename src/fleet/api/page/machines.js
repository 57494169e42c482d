// Owns the machines: what is known of each by its last probe, and that nothing is known where none was made.
import { h, say } from "./dom.js";
import { fits } from "./route.js";
import { Table } from "./table.js";
import { ago, state } from "./words.js";

const URGENCY = { down: 0, unknown: 1, warned: 2, up: 3, queued: 3 }; // what is ill comes first

export function machineTable() {
  return new Table({
    name: "machines",
    title: "Machines",
    empty: "No machine is known.",
    keyOf: (one) => one.name,
    columns: [
      {
        label: "Status",
        of: (one) => [looks(one), one.draining ? "draining" : one.status],
        draw: ([look, word]) => state(look, word),
      },
      { label: "Machine", kind: "wide", of: (one) => one.name, draw: (name) => h("b", {}, name) },
      { label: "Busy", kind: "right", of: (one) => (one.slots === null ? "-" : `${one.sessions}/${one.slots}`) },
      { label: "Responsive", of: (one) => one.responsive, draw: responsive },
      { label: "ms", kind: "right", of: (one) => (one.ms === null ? "-" : String(one.ms)) },
      { label: "Last probe", kind: "right", of: (one) => [one.probed_at, one.kind], draw: probe },
      { label: "Known", kind: "wide quiet", of: (one) => known(one), draw: (text) => h("span", { title: text }, text) },
    ],
    about: (one) => ({ "data-host": one.name, "data-state": looks(one) }),
  });
}

// The declared machines by their last probes; this machine, and those of runs, by what the board says of them.
export function drawMachines(table, { board, machines }, text) {
  const declared = new Map(machines.machines.map((one) => [one.name, one]));
  const all = board.hosts.map((host) => ({
    ...ofHost(host),
    ...declared.get(host.name),
    sessions: host.sessions,
    slots: host.slots,
  }));
  const named = new Set(all.map((one) => one.name));
  const others = machines.machines
    .filter((one) => !named.has(one.name))
    .map((one) => ({ ...one, sessions: 0, slots: null }));
  const every = [...all, ...others].sort((a, b) => URGENCY[looks(a)] - URGENCY[looks(b)]);
  table.draw(
    every.filter((one) => fits(text, one.name, one.kind, one.status, one.detail)),
    every.length,
  );
  const fault = machines.api_fault;
  say(table.number, `${table.number.textContent}${fault ? `: ${fault}` : ""}`);
}

function ofHost(host) {
  const isHere = host.kind === "local";
  return {
    name: host.name,
    kind: host.kind,
    status: host.state,
    responsive: isHere ? true : host.latency_ms === null ? null : host.state === "up",
    healthy: host.state === "up" ? true : host.state === "down" ? false : null,
    ms: host.latency_ms,
    probed_at: host.probed_at,
    detail: host.evidence,
    reason: "",
    warnings: [],
    draining: host.draining,
    asleep: false,
  };
}

function looks(one) {
  if (one.asleep) return "queued";
  if (one.healthy === null || one.healthy === undefined) return "unknown";
  if (!one.healthy) return "down";
  return one.warnings.length ? "warned" : "up";
}

function known(one) {
  return [one.healthy === false || one.healthy === null ? one.reason : "", one.detail, ...one.warnings]
    .filter(Boolean)
    .join("; ");
}

function responsive(value) {
  if (value === null || value === undefined) return h("span", { class: "quiet" }, "not known");
  return value ? "yes" : h("span", { class: "bad" }, "no");
}

function probe([at, kind]) {
  if (kind === "local") return h("span", { class: "quiet" }, "this machine");
  return at ? ago(at) : h("span", { class: "warn" }, "never");
}
