"""The history of probes: counted in stretches of five minutes, so that it stays small, and forgotten in time."""

from __future__ import annotations

from fleet.model.host import Host, Stretch
from fleet.store.engine import Tx

STRETCH_MS = 300_000
DAY_MS = 86_400_000
KEEP_DAYS = 30


def count(tx: Tx, host: Host, keep_days: int) -> None:
    """One more probe. The caller is alone with this host."""
    at = tx.now - tx.now % STRETCH_MS
    ms = (host.latency_ms or 0) if host.state == "up" else 0
    found = [int(host.state == state) for state in ("up", "down", "unknown")]
    sql = (
        "UPDATE probes SET up = up + ?, down = down + ?, unknown = unknown + ?, ms_total = ms_total + ?,"
        " ms_most = CASE WHEN ms_most < ? THEN ? ELSE ms_most END WHERE host = ? AND at = ?"
    )
    if tx.run(sql, *found, ms, ms, ms, host.name, at):
        return
    tx.run(
        "INSERT INTO probes (host, at, up, down, unknown, ms_total, ms_most) VALUES (?, ?, ?, ?, ?, ?, ?)",
        host.name,
        at,
        *found,
        ms,
        ms,
    )
    tx.run("DELETE FROM probes WHERE host = ? AND at < ?", host.name, tx.now - keep_days * DAY_MS)


def of_host(tx: Tx, name: str, since: int) -> list[Stretch]:
    """The probes of a machine since then, oldest first."""
    sql = "SELECT at, up, down, unknown, ms_total, ms_most FROM probes WHERE host = ? AND at >= ? ORDER BY at"
    names = ("at", "up", "down", "unknown", "ms_total", "ms_most")
    return [Stretch(**dict(zip(names, row, strict=True))) for row in tx.rows(sql, name, since - since % STRETCH_MS)]


def totals(tx: Tx, since: int) -> dict[str, Stretch]:
    """The probes of every machine since then, counted together."""
    sql = (
        "SELECT host, SUM(up), SUM(down), SUM(unknown), SUM(ms_total), MAX(ms_most) FROM probes"
        " WHERE at >= ? GROUP BY host"
    )
    found = tx.rows(sql, since - since % STRETCH_MS)
    return {
        host: Stretch(at=since, up=int(up), down=int(down), unknown=int(unknown), ms_total=int(ms), ms_most=int(most))
        for host, up, down, unknown, ms, most in found
    }
