"""Everything that can go wrong, as one tree.

    FleetError
    ├── UsageError              exit 2   wrong words on the command line, or a value that cannot be taken
    │   ├── ConfigError                  fleet.toml cannot be used; carries file, line and the nearest valid key
    │   ├── SpecError                    a spec cannot be used; carries everything that is wrong with it
    │   ├── CycleError                   tasks would need each other in a circle
    │   └── Ambiguous                    a short id fits more than one thing
    ├── NotFound                exit 4   no such task, run, host, session, file
    ├── Conflict                exit 1   the thing is not in a state that allows this
    │   ├── IllegalMove                  a transition that the tables of the model do not have
    │   ├── Supervised          exit 3   another supervisor runs this home
    │   └── Fenced                       somebody else owns this session now: stop acting on it
    │       └── LeaseLost                this supervisor's lease has ended
    ├── HomeError               exit 1   the home cannot be used
    │   └── NoHome              exit 4   there is no home yet
    ├── StoreError              exit 1   the store failed
    │   ├── StoreBusy           retry    another process holds the write lock too long
    │   ├── StoreFull           retry    no space left on the device
    │   ├── StoreReadOnly                the home cannot be written
    │   ├── StoreCorrupt                 the database is damaged
    │   ├── StoreTooNew                  a newer Fleet wrote this home
    │   └── StoreUnreachable    retry    the database server does not answer
    ├── TransportError          retry    a host could not be reached, or did not do what it was asked
    │   ├── HostFull            retry    no space is left on the host
    │   ├── HostBusy            retry    the provider of the host asks to wait
    │   ├── HostAsleep          retry    the host fell asleep while something was to run on it
    │   ├── HostMissing         retry    the provider of the host says that there is no such host
    │   │   └── HostGone        retry    it has said so several times, over some time, and shows others
    │   ├── HostUnfit                    the host cannot be used as it is set up
    │   │   └── HostUntrusted            the host's key is not one that is believed
    │   └── NotStarted          retry    the host did not start the session; nothing ran
    ├── ChannelError            retry    a channel did not take an alert
    │   └── ChannelRefused               it never will, as it is set up
    ├── ServerError             exit 1   a fleet that is served elsewhere cannot be asked
    │   ├── ServerUnreachable   retry    its server does not answer
    │   └── ServerRefused                it does not take the token, or the token's role is not enough
    ├── LedgerBroken            exit 1   the hash chain or the fold does not agree with what is stored
    ├── ProgramError            exit 1   a program that Fleet drives failed
    │   └── ProgramMissing               it is not installed
    └── PluginError             exit 1   what somebody plugged in failed in its own code

The docstring of a class says what happened, in words for the operator. An agent that fails is not here:
that is a receipt.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_SHOWN = 100  # problems of one spec


class FleetError(Exception):
    """Something went wrong that a person should read about."""

    retryable = False
    exit_code = 1
    hint = ""

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").split("\n", 1)[0])
        if hint is not None:
            self.hint = hint


class UsageError(FleetError):
    """A value was given that cannot be taken."""

    exit_code = 2


class ConfigError(UsageError):
    """The configuration cannot be used."""


class SpecError(UsageError):
    """A spec cannot be used; every problem is told at once, with its path."""

    def __init__(self, source: str, problems: Sequence[str], *, hint: str | None = None) -> None:
        self.problems = tuple(problems)
        shown = [*self.problems[:MOST_SHOWN]]
        if len(self.problems) > MOST_SHOWN:
            shown.append(f"and {len(self.problems) - MOST_SHOWN} more")
        if len(shown) == 1:
            super().__init__(f"{source}: {shown[0]}", hint=hint)
        else:
            lines = "".join(f"\n  {text}" for text in shown)
            super().__init__(f"{source}: {len(self.problems)} problems{lines}", hint=hint)


class CycleError(UsageError):
    """The tasks would need each other in a circle."""


class NotFound(FleetError):
    """There is no such thing."""

    exit_code = 4


class Ambiguous(UsageError):
    """A short id fits more than one thing."""


class Conflict(FleetError):
    """The thing is not in a state that allows this."""


class IllegalMove(Conflict):
    """This state cannot be reached from the present one."""


class Supervised(Conflict):
    """Another supervisor runs this home; this one did not start."""

    exit_code = 3
    hint = "`fleet run stop` ends it"


class Fenced(Conflict):
    """Somebody else owns this session now; nothing was written."""


class LeaseLost(Fenced):
    """This supervisor's lease has ended; it must stop acting."""


class HomeError(FleetError):
    """The home directory cannot be used."""


class NoHome(HomeError):
    """There is no Fleet home here yet."""

    exit_code = 4
    hint = "run `fleet init` (or `fleet init --here` for a home in this directory)"


class StoreError(FleetError):
    """The store failed; nothing was written."""


class StoreBusy(StoreError):
    """Another process holds the store's write lock; nothing was written."""

    retryable = True
    hint = "run the same command again in a moment"


class StoreFull(StoreError):
    """No space is left for the store; nothing was written."""

    retryable = True
    hint = "free some space on the home's disk, then run the same command again"


class StoreReadOnly(StoreError):
    """The home cannot be written; nothing was written."""

    hint = "check the owner and mode of the home, or choose another with --home"


class StoreCorrupt(StoreError):
    """The database is damaged."""

    hint = "run `fleet init --force`: it keeps the damaged file and rebuilds the database from fleet.jsonl"


class StoreTooNew(StoreError):
    """A newer version of Fleet wrote this home; this one does not touch it."""

    hint = "upgrade Fleet on this machine"


class StoreUnreachable(StoreError):
    """The database server does not answer."""

    retryable = True
    hint = "check [store] url in fleet.toml, and that the server runs"


class TransportError(FleetError):
    """A host could not be reached, or did not do what it was asked."""

    retryable = True
    course: Exception | None = None  # how far a run had come that it breaks off


class HostFull(TransportError):
    """No space is left on the host."""

    hint = "free some space where the host keeps its sessions"


class HostBusy(TransportError):
    """The provider of the host asks to wait; nothing was done."""

    def __init__(
        self, message: str | None = None, *, hint: str | None = None, retry_after_seconds: float = 0.0
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_seconds = retry_after_seconds


class HostAsleep(TransportError):
    """The host fell asleep while something was to run on it; what runs there stands still."""


class HostMissing(TransportError):
    """The provider of the host says that there is no such host. It has said so in error before."""


class HostGone(HostMissing):
    """The provider of the host has said several times, over some time, that there is no such host, and shows others."""


class HostUnfit(TransportError):
    """The host cannot be used as it is set up."""

    retryable = False


class HostUntrusted(HostUnfit):
    """The host's key is not one that is believed; nothing was sent to it."""


class NotStarted(TransportError):
    """The host did not start the session; nothing ran."""


class ChannelError(FleetError):
    """A channel did not take an alert; it may later."""

    retryable = True

    def __init__(self, message: str | None = None, *, after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.after_seconds = after_seconds  # when the receiver wants to be asked again, where it says so


class ChannelRefused(ChannelError):
    """A channel cannot take alerts as it is set up."""

    retryable = False


class ServerError(FleetError):
    """A fleet that is served elsewhere cannot be asked."""


class ServerUnreachable(ServerError):
    """The server of the fleet does not answer."""

    retryable = True


class ServerRefused(ServerError):
    """The server does not take the token, or the token's role is not enough."""


class LedgerBroken(FleetError):
    """What the ledger says and what is stored do not agree."""


class ProgramError(FleetError):
    """A program that Fleet drives failed."""


class ProgramMissing(ProgramError):
    """A program that Fleet needs is not installed."""


class PluginError(FleetError):
    """What somebody plugged in failed in its own code, or gave what is not of its contract."""

    hint = "mend or update the plugin that is named"


def how_to_install(package: str) -> str:
    """The command that puts a package where this program finds it: into its own environment, wherever that is."""
    return f"{sys.executable} -m pip install '{package}'"


def may_pass(exc: BaseException) -> bool:
    """Whether an error may be over in a moment: a full disk, a locked database, a server that is away."""
    return exc.retryable if isinstance(exc, FleetError) else isinstance(exc, OSError)


REFUSED = (Ambiguous, Conflict, NotFound)  # of many, this one alone; anything else is in the way of all
