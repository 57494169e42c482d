"""Booking by difference: what a vendor has counted so far, and what we have told of it."""

from __future__ import annotations

import msgspec

from fleet.model.stream import Used


class Tally(msgspec.Struct, frozen=True, omit_defaults=True):
    """Sums since a conversation began."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_microusd: int = 0

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            self.cost_microusd + other.cost_microusd,
        )

    def at_least(self, other: Tally) -> Tally:
        """The larger of each sum."""
        return Tally(
            max(self.input_tokens, other.input_tokens),
            max(self.cached_tokens, other.cached_tokens),
            max(self.output_tokens, other.output_tokens),
            max(self.cost_microusd, other.cost_microusd),
        )

    def beyond(self, told: Tally) -> tuple[Used, ...]:
        """What is to be told after `told` was: one difference, or nothing."""
        used = Used(
            input_tokens=max(0, self.input_tokens - told.input_tokens),
            cached_tokens=max(0, self.cached_tokens - told.cached_tokens),
            output_tokens=max(0, self.output_tokens - told.output_tokens),
            cost_microusd=max(0, self.cost_microusd - told.cost_microusd),
        )
        return () if used == NOTHING_USED else (used,)


NOTHING = Tally()
NOTHING_USED = Used()
