"""How often something is to be done, so that cron and systemd both can say it."""

from __future__ import annotations

import msgspec

HOUR, DAY = 60, 1440
UNITS = {"m": 1, "h": HOUR, "d": DAY}
STEPS = tuple(n for n in range(1, DAY + 1) if (HOUR % n == 0 if n < HOUR else n % HOUR == 0 and DAY % n == 0))


class Every(msgspec.Struct, frozen=True):
    """A number of minutes after which it comes round: one of STEPS, which divide an hour or a day evenly."""

    minutes: int

    @classmethod
    def parse(cls, text: str) -> Every:
        """`15m`, `2h`, `1d`. ValueError, in words, for what cannot be said in a crontab."""
        number, unit = text[:-1], text[-1:]
        if unit not in UNITS or not (number.isascii() and number.isdecimal()) or len(number) > 6 or not int(number):
            raise ValueError(f"expected a time such as 15m, 2h or 1d, not `{text}`")
        minutes = int(number) * UNITS[unit]
        if minutes not in STEPS:
            near = min(STEPS, key=lambda step: abs(step - minutes))
            raise ValueError(f"`{text}` does not divide an hour or a day evenly; the nearest that does is {cls(near)}")
        return cls(minutes)

    def __str__(self) -> str:
        for unit in ("d", "h"):
            if not self.minutes % UNITS[unit]:
                return f"{self.minutes // UNITS[unit]}{unit}"
        return f"{self.minutes}m"

    @property
    def cron(self) -> str:
        """The five fields of a crontab."""
        if self.minutes < HOUR:
            return f"{_step(self.minutes)} * * * *"
        return f"0 {_step(self.minutes // HOUR)} * * *" if self.minutes < DAY else "0 0 * * *"

    @property
    def calendar(self) -> str:
        """The OnCalendar of a systemd timer, for the same moments."""
        if self.minutes < HOUR:
            return f"*:0/{self.minutes}"
        return f"0/{self.minutes // HOUR}:00" if self.minutes < DAY else "daily"

    @property
    def words(self) -> str:
        """For people."""
        number, unit = (self.minutes, "minute") if self.minutes < HOUR else (self.minutes // HOUR, "hour")
        if self.minutes == DAY:
            return "every day"
        return f"every {unit}" if number == 1 else f"every {number} {unit}s"


def _step(n: int) -> str:
    return "*" if n == 1 else f"*/{n}"
