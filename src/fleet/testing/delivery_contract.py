"""DeliveryContract: alerts on their way, as every store must keep them. Part of StoreContract."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from fleet.config.clock import utc_ms
from fleet.errors import NotFound
from fleet.model import event as ev
from fleet.model.alert import AlertKind
from fleet.model.delivery import Delivery
from fleet.store.store import Store
from fleet.testing.audit import audit
from fleet.testing.store_suite import SUP, Stores, StoreSuite

A_DELIVERY = Delivery(
    id="0123456789ab.ops",
    channel="ops",
    about="fleet-abc",
    alert=AlertKind.NEEDS_HUMAN,
    reason="look",
    raised_at=1,
    by=SUP,
)


class DeliveryContract(StoreSuite):
    """Alerts on their way."""

    def told(self, store: Store, channel: str = "ops") -> list[str]:
        return [ev.kind_of(entry.event) for entry in store.chain(f"channel/{channel}")]

    def test_an_alert_is_announced_with_the_cursor_then_ended(self, store: Store) -> None:
        """The intent and the reader's place are one step; the outcome is another; both are events of the channel."""
        assert store.announce([A_DELIVERY], reader="alerts", position="7").result() == [A_DELIVERY]
        assert (store.cursor("alerts"), store.undelivered()) == ("7", [A_DELIVERY])
        ended = store.delivered(A_DELIVERY.id, "sent", by=SUP, attempts=2).result()
        assert (ended.outcome, ended.attempts, store.undelivered()) == ("sent", 2, [])
        assert store.delivered(A_DELIVERY.id, "failed", by=SUP).result() == ended
        assert self.told(store) == ["alert.sending", "alert.sent"]
        assert store.deliveries(about="fleet-abc") == [ended]
        assert (store.alerts(), store.alerts(limit=0)) == ([ended], [])
        audit(store)

    def test_what_was_announced_is_not_announced_again(self, store: Store) -> None:
        """Whoever reads the same event again has nothing to send; its cursor moves all the same."""
        store.announce([A_DELIVERY], reader="alerts", position="7").result()
        again = replace(A_DELIVERY, by="sup-2")
        assert store.announce([again], reader="alerts", position="8").result() == []
        assert (store.cursor("alerts"), store.undelivered()) == ("8", [A_DELIVERY])
        audit(store)

    def test_of_many_who_announce_one_sends(self, store: Store, stores: Stores) -> None:
        """Several supervisors read the same feed; an alert goes to a channel once."""
        handles = [stores.open() for _ in range(4)]

        def announce(place: int) -> int:
            mine = replace(A_DELIVERY, by=f"sup-{place}")
            return len(handles[place].announce([mine]).result())

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(announce, range(4))) == 1
        assert self.told(store) == ["alert.sending"]

    def test_one_with_an_outcome_is_nobodys_to_send(self, store: Store) -> None:
        """A duplicate or a dry run is on record, with both of its events, and does not wait."""
        told = replace(A_DELIVERY, outcome="duplicate", detail="the same")
        assert store.announce([told]).result() == [told]
        assert store.announce([told]).result() == []
        (kept,) = store.deliveries(about="fleet-abc")
        assert (kept.outcome, kept.detail) == ("duplicate", "the same")
        assert (store.undelivered(), self.told(store)) == ([], ["alert.sending", "alert.sent"])
        audit(store)

    def test_what_a_dead_sender_left_is_taken_over_as_a_repeat(self, store: Store) -> None:
        """Not while it lives; afterwards once, marked, and by one."""
        store.announce([A_DELIVERY]).result()
        store.join("sup-2", machine="here", pid=2, seconds=60).result()
        assert store.take_over(by="sup-2").result() == []
        store.leave(SUP, reason="ended").result()
        (taken,) = store.take_over(by="sup-2").result()
        assert (taken.id, taken.by, taken.repeat) == (A_DELIVERY.id, "sup-2", True)
        assert store.take_over(by="sup-3").result() == []
        assert store.undelivered() == [taken]
        assert self.told(store) == ["alert.sending", "alert.sending"]
        audit(store)

    def test_what_a_check_left_is_taken_over_when_it_must_have_ended(self, store: Store) -> None:
        """A command that sends alerts is no supervisor, and cannot leave: after two minutes it is over."""
        now = utc_ms()
        store.announce([replace(A_DELIVERY, by="check-1", raised_at=now)]).result()
        assert store.take_over(by=SUP).result() == []
        store.announce([replace(A_DELIVERY, id="2.ops", by="check-1", raised_at=now - 180_000)]).result()
        store.announce([replace(A_DELIVERY, id="3.ops", by="ana", raised_at=now - 180_000)]).result()
        (taken,) = store.take_over(by=SUP).result()
        assert (taken.id, taken.by, taken.repeat) == ("2.ops", SUP, True)
        audit(store)

    def test_an_incident_is_open_until_it_is_resolved(self, store: Store) -> None:
        """Only where the channel can be told, and only what was sent; a resolve that failed leaves it open."""
        plain, pager = A_DELIVERY, replace(A_DELIVERY, id="1.pager", channel="pager", resolvable=True)
        lost = replace(pager, id="2.pager", alert=AlertKind.STALE)
        store.announce([plain, pager, lost]).result()
        store.delivered(plain.id, "sent", by=SUP).result()
        store.delivered(pager.id, "sent", by=SUP).result()
        store.delivered(lost.id, "failed", by=SUP).result()
        assert [each.id for each in store.incidents()] == ["1.pager"]
        for name, outcome, still_open in (("3.pager", "failed", 1), ("4.pager", "sent", 0)):
            store.announce([replace(pager, id=name, action="resolve")]).result()
            store.delivered(name, outcome, by=SUP).result()  # type: ignore[arg-type]
            assert len(store.incidents()) == still_open
        audit(store)

    def test_what_is_not_there_cannot_end(self, store: Store) -> None:
        """An unknown delivery is told as such."""
        with pytest.raises(NotFound):
            store.delivered("nothing", "sent", by=SUP).result()
