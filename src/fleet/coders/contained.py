"""A coder whose faults stay its own: what its code raises, or gives back that is not of the contract, names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_args

import msgspec

from fleet.coders.coder import Aside, Coder, Exit, SupportsAside, SupportsResume, Work
from fleet.errors import PluginError, UsageError
from fleet.model.launch import Launch
from fleet.model.outcome import Outcome
from fleet.model.stream import AnySaid

T = TypeVar("T")
Parse = Callable[[Any, bytes], tuple[Any, tuple[AnySaid, ...]]]
LONGEST = 300  # of what an exception says
SAID = get_args(AnySaid)


def ask(name: str, plugin: Any, method: str, *given: Any, may_refuse: bool = False) -> Any:
    """What a coder's method answers. PluginError: whatever it raised, but the refusal that its contract allows."""
    try:
        return getattr(plugin, method)(*given)
    except KeyboardInterrupt:  # a person's
        raise
    except BaseException as exc:  # an exit, too: it would end all sessions
        if isinstance(exc, PluginError) or (may_refuse and isinstance(exc, UsageError)):
            raise
        raise fault(name, method, f"raised {_told(exc)}") from exc


def fault(name: str, method: str, what: str) -> PluginError:
    """That a coder broke its contract, for people."""
    return PluginError(f"the coder `{name}` failed in its own code: `{method}` {what}")


class ContainedCoder:
    """Any coder, as one session uses it: every answer is one of the contract, or a PluginError."""

    def __init__(self, name: str, coder: Coder) -> None:
        self.name = name  # by which it is registered, whatever it calls itself
        self._coder = coder
        try:  # a stranger's property may raise, too
            self.resumable = isinstance(coder, SupportsResume) and bool(coder.resumable)
            self.has_aside = isinstance(coder, SupportsAside)
            self._parse: Parse = coder.parse
            self._parse_aside: Parse = coder.parse_aside if isinstance(coder, SupportsAside) else _nothing
        except Exception as exc:
            raise PluginError(f"the coder `{name}` is not of the contract: {_told(exc)}") from exc

    def launch(self, work: Work) -> Launch:
        """The program to run. UsageError: it cannot honour the work."""
        return self._sound("launch", self._ask("launch", work, may_refuse=True), Launch)

    def begin(self, before: Any = None) -> Any:
        """The state before the first line."""
        return self._ask("begin", before)

    def parse(self, state: Any, line: bytes) -> tuple[Any, tuple[AnySaid, ...]]:
        """The state and what was said, after one more line."""
        return self._parsed("parse", self._parse, state, line)

    def outcome(self, state: Any, exit: Exit, stderr: str) -> Outcome:
        """What became of the session."""
        return self._sound("outcome", self._ask("outcome", state, exit, stderr), Outcome)

    def context_limit(self, model: str | None) -> int | None:
        """How many tokens a conversation with that model can hold."""
        found = self._ask("context_limit", model)
        if found is not None and not isinstance(found, int):
            raise fault(self.name, "context_limit", f"gave {_kind(found)}, not a number")
        return found

    def aside(self, state: Any) -> Aside | None:
        """The file beside its stream; None of one that keeps none."""
        found = self._ask("aside", state) if self.has_aside else None
        return self._sound("aside", found, Aside) if found is not None else None

    def parse_aside(self, state: Any, line: bytes) -> tuple[Any, tuple[AnySaid, ...]]:
        """The state and what was said, after one more line of that file."""
        return self._parsed("parse_aside", self._parse_aside, state, line)

    def packed(self, state: Any) -> msgspec.Raw:
        """Its state as it is stored."""
        try:
            return msgspec.Raw(msgspec.json.encode(state))
        except Exception as exc:
            raise fault(self.name, "state", f"cannot be stored: {_told(exc)}") from exc

    def unpacked(self, raw: msgspec.Raw) -> Any:
        """A state as it was stored; None where there is none, or where it is of another version of the coder."""
        try:
            return msgspec.json.decode(raw, type=self._coder.state_type) if bytes(raw) != b"null" else None
        except msgspec.DecodeError:
            return None
        except Exception as exc:
            raise fault(self.name, "state_type", f"is no type of a state: {_told(exc)}") from exc

    def _ask(self, method: str, *given: Any, may_refuse: bool = False) -> Any:
        return ask(self.name, self._coder, method, *given, may_refuse=may_refuse)

    def _parsed(self, method: str, parse: Parse, state: Any, line: bytes) -> tuple[Any, tuple[AnySaid, ...]]:
        """Done for each line: what would cost time is not looked at."""
        try:
            after, said = parse(state, line)
            said = tuple(said)
        except KeyboardInterrupt:
            raise
        except BaseException as exc:
            raise fault(self.name, method, f"raised {_told(exc)}") from exc
        for each in said:
            if not isinstance(each, SAID):
                raise fault(self.name, method, f"gave {_kind(each)}, which is nothing that is said")
        return after, said

    def _sound(self, method: str, answer: Any, kind: type[T]) -> T:
        """The answer, if it is of a kind through and through: what is wrong in it would be found much later."""
        if not isinstance(answer, kind):
            raise fault(self.name, method, f"gave {_kind(answer)}, not {kind.__name__}")
        try:
            return msgspec.convert(msgspec.to_builtins(answer), kind)
        except Exception as exc:
            raise fault(self.name, method, f"gave what is no {kind.__name__}: {_told(exc)}") from exc


def _told(exc: BaseException) -> str:
    """An exception in one line, with the place that raised it."""
    try:
        words = " ".join(str(exc).split())
    except Exception:  # it is a stranger's, too
        words = ""
    place, trace = "", exc.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        place, trace = f" ({code.co_filename.rpartition('/')[2]}, line {trace.tb_lineno})", trace.tb_next
    return f"{type(exc).__name__}{f': {words[:LONGEST]}' if words else ''}{place}"


def _nothing(state: Any, line: bytes) -> tuple[Any, tuple[AnySaid, ...]]:  # noqa: ARG001
    return state, ()


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
