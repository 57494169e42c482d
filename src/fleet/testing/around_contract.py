"""AroundContract: what stands around the queue: intents, hosts, cursors. Part of StoreContract."""

from __future__ import annotations

from fleet.model.event import kind_of
from fleet.model.host import Host
from fleet.store.store import Store
from fleet.testing.audit import audit
from fleet.testing.store_suite import ME, SUP, Stores, StoreSuite


class AroundContract(StoreSuite):
    """What stands around the queue: intents, hosts, cursors."""

    def test_intents_are_recorded_and_settled_once(self, store: Store) -> None:
        """A wish stays pending until a supervisor settles it; the same wish is not recorded twice."""
        self.add(store, "work")
        uid = self.claim_one(store).task.uid
        intent = store.intend("stop", uid, by=ME).result()
        assert store.intend("stop", uid, by="bob").result() == intent
        assert [pending.id for pending in store.intents()] == [intent.id]
        done = store.fulfil(intent.id, "done", detail="stopped", by=SUP).result()
        assert done == store.fulfil(intent.id, "refused", by=SUP).result()
        assert (done.outcome, store.intents()) == ("done", [])
        assert [found.outcome for found in store.intents(target=uid)] == ["done"]
        audit(store)

    def test_hosts_speak_up_only_when_they_change(self, store: Store, stores: Stores) -> None:
        """Every probe is kept, but only a change of state is an event; `since` is when it last changed."""
        host = Host(name="builder-1", kind="ssh", state="up", since=0, latency_ms=12)
        first = store.probed(host, by=SUP).result()
        stores.tick(5)
        second = store.probed(host, by=SUP).result()
        assert second.since == first.since
        down = store.probed(Host(name="builder-1", kind="ssh", state="down", since=0, evidence="timeout"), by=SUP)
        assert down.result().since > first.since
        kinds = [kind_of(entry.event) for entry in store.chain("host/builder-1")]
        assert kinds == ["host.changed", "host.changed", "alert.raised"]
        assert [(found.name, found.state) for found in store.hosts()] == [("builder-1", "down")]

    def test_people_hear_of_a_host_after_so_many_probes(self, store: Store) -> None:
        """That it is down is raised once, when that many in a row found it so; that it is up again, once, at once."""
        states = ["up", "down", "up", "down", "down", "down", "unknown", "down", "up", "up"]
        heard = []
        for state in states:
            store.probed(Host(name="b", kind="ssh", state=state, since=0), by=SUP, alert_after=2).result()
            heard.append(sum(kind_of(entry.event) == "alert.raised" for entry in store.chain("host/b")))
        assert heard == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
        audit(store)

    def test_what_a_probe_did_not_ask_for_stays(self, store: Store) -> None:
        """Facts are as the last probe that asked for them had them; the last good answer is remembered."""
        full = Host(
            name="b", kind="ssh", state="up", since=0, answered_at=7, coder=False, warnings=("full",), status="warm"
        )
        store.probed(full, by=SUP).result()
        store.probed(Host(name="b", kind="ssh", state="down", since=0), by=SUP).result()
        (known,) = store.hosts()
        assert (known.answered_at, known.coder, known.warnings, known.failures) == (7, False, ("full",), 1)
        store.probed(Host(name="b", kind="ssh", state="up", since=0, answered_at=9, coder=True), by=SUP).result()
        (known,) = store.hosts()
        assert (known.answered_at, known.coder, known.warnings, known.failures) == (9, True, (), 0)

    def test_probes_are_counted_and_forgotten(self, store: Store, stores: Stores) -> None:
        """Probes of a few minutes are one row: how many found it up, and how fast; what is old is gone."""
        for state, ms in (("up", 10), ("up", 30), ("down", None), ("unknown", None)):
            store.probed(Host(name="b", kind="ssh", state=state, since=0, latency_ms=ms), by=SUP).result()
        store.probed(Host(name="c", kind="ssh", state="down", since=0), by=SUP).result()
        found = store.probes("b", since=0)
        assert sum(each.up for each in found) == 2
        assert (sum(each.down for each in found), sum(each.unknown for each in found)) == (1, 1)
        assert (sum(each.ms_total for each in found), max(each.ms_most for each in found)) == (40, 30)
        totals = store.probe_totals(since=0)
        assert (totals["b"].up, totals["b"].ms_most, totals["c"].down) == (2, 30, 1)
        assert store.probes("b", since=found[-1].at + 86_400_000) == []
        stores.tick(2 * 86_400)
        store.probed(Host(name="b", kind="ssh", state="up", since=0, latency_ms=5), by=SUP, keep_days=1).result()
        (left,) = store.probes("b", since=0)
        assert (left.up, left.ms_total) == (1, 5)

    def test_a_host_drains_by_a_persons_word(self, store: Store) -> None:
        """No probe takes the word back; saying it twice is told once; it may be said of a host that is not known."""
        store.drain("builder-1", "ssh", draining=True, by=ME).result()
        store.drain("builder-1", "ssh", draining=True, by=ME).result()
        up = store.probed(Host(name="builder-1", kind="ssh", state="up", since=0), by=SUP).result()
        assert (up.state, up.draining) == ("up", True)
        again = store.drain("builder-1", "ssh", draining=False, by=ME).result()
        assert (again.state, again.draining, again.since) == ("up", False, up.since)
        assert [kind_of(entry.event) for entry in store.chain("host/builder-1")] == ["host.changed"] * 3
        audit(store)

    def test_cursors_remember(self, store: Store) -> None:
        """A reader finds its place again."""
        assert store.cursor("alerts") == ""
        store.advance("alerts", "12").result()
        store.advance("alerts", "15").result()
        assert store.cursor("alerts") == "15"
