"""What an agent said, in words for people. The records are those of a task's log.jsonl."""

from __future__ import annotations

import msgspec

from fleet.cli.words import printable, when
from fleet.model import stream as st

INDENT = " " * 10  # under the time of day


class Record(msgspec.Struct):
    """A line of log.jsonl: something said, at its place in the raw output, or a remark of Fleet's own."""

    session: str = ""
    offset: int = -1
    at: int = 0
    said: st.AnySaid | None = None
    event: str = ""


_decode = msgspec.json.Decoder(Record).decode


def read(line: bytes) -> Record | None:
    """A line as a record; None when it is of another kind, or none of ours."""
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class Transcript:
    """Turns records into lines, one after another: a session gets a heading, a tool that fails its name."""

    def __init__(self) -> None:
        self._session = ""
        self._tools: dict[str, str] = {}

    def lines(self, raw: bytes) -> list[str]:
        """The lines for one record, which may be none. What is not a record is shown as it stands."""
        record = read(raw)
        if record is None:
            return [printable(raw.decode("utf-8", "replace").rstrip("\n"))]
        heading = []
        if record.session != self._session:
            self._session, self._tools = record.session, {}
            heading = [f"--- {record.session}  {when(record.at)}"]
        words = self._said(record.said) if record.said else record.event.replace("_", " ")
        if not words:
            return heading
        first, *others = printable(words).splitlines() or [""]
        return [*heading, f"{when(record.at)[11:]}  {first}", *(INDENT + line for line in others)]

    def _said(self, said: st.AnySaid) -> str:
        """In words; nothing for what only counts, and for calls that went well."""
        match said:
            case st.Started(model=model, version=version):
                return "started" + (f" with {model}" if model else "") + (f", version {version}" if version else "")
            case st.Text(text=text, subagent=subagent):
                return f"(subagent) {text.strip()}" if subagent else text.strip()
            case st.Thinking(text=text):
                return f"(thinking) {text.strip()}"
            case st.ToolStarted(id=call, name=name, input=given, subagent=subagent):
                self._tools[call] = name
                return f"{'  ' if subagent else ''}> {name}  {one_line(given)}".rstrip()
            case st.ToolEnded(id=call, ok=ok, output=output):
                name = self._tools.pop(call, "a tool")
                return "" if ok else f"! {name} failed  {one_line(output)}".rstrip()
            case st.Retrying(reason=reason, attempt=attempt, after_ms=after):
                wait = f" in {after / 1000:g} s" if after else ""
                return f"! tries again{wait}{f' (attempt {attempt})' if attempt else ''}: {reason}"
            case st.Limited(window=window, rejected=True, resets_at=resets):
                return f"! the plan's limit ({window}) is reached" + (f" until {when(resets)}" if resets else "")
            case st.Denied(tool=tool, reason=reason):
                return f"! was not allowed to use {tool}" + (f": {reason}" if reason else "")
            case st.Compacted(before_tokens=before, after_tokens=after):
                sizes = f" from {before:,} to {after:,} tokens" if before and after else ""
                return f"shortened its conversation{sizes}"
            case st.Notice(text=text):
                return f"note: {text}"
            case st.TurnEnded(ok=ok, reason=reason):
                return "ended its turn" if ok else f"! ended its turn: {reason or 'it failed'}"
            case _:
                return ""


def one_line(text: str, most: int = 100) -> str:
    """A text on one line, cut where it is long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"
