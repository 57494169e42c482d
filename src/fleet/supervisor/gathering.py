"""Gathering: what a session left becomes evidence: its files, its words, and how it ended. It may be done again."""

from __future__ import annotations

from collections.abc import Sequence
from mimetypes import guess_type
from pathlib import PurePosixPath

import msgspec

from fleet.hosts.collect import Collector, Shelf
from fleet.hosts.files import Looked, Places, Seen, look
from fleet.model.receipt import ArtifactRef, Place
from fleet.scorers.scorer import Evidence, FileSeen, TextSeen, Wants
from fleet.supervisor.attempt import Attempt
from fleet.supervisor.words import last_words

MADE = frozenset({"log", "receipt"})  # artifacts that Fleet makes itself
MOST_TEXT = 4 << 20  # of what a worker said, its end
MISSING = "expected artifacts are missing"
BINARY = "application/octet-stream"


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """What a session left."""

    evidence: Evidence
    artifacts: tuple[ArtifactRef, ...]
    missing: tuple[str, ...]  # expected artifacts that are not there
    notes: tuple[str, ...]  # what could not be kept, and why


def places_of(attempt: Attempt) -> Places:
    """Where the files of a session may be."""
    return Places(
        artifacts=attempt.artifacts,
        workspace=attempt.cwd,
        reference=f"{attempt.hosted.directory}/launch",
    )


async def gather(attempt: Attempt, exit_code: int | None, wants: Sequence[Wants]) -> Gathered:
    """Look, keep, and write down what was kept. TransportError: the host did not answer; ask again."""
    terms = attempt.task.terms
    expected = [kind for kind in terms.expected_artifacts if kind not in MADE]
    paths = list(dict.fromkeys([*expected, *(want.path for want in wants if want.path)]))
    looked = await look(attempt.site.transport, places_of(attempt), paths)
    keeper = _Keeper(attempt, looked, dict(zip(paths, looked.asked, strict=True)))
    missing = [kind for kind in expected if not await keeper.expected(kind)]
    with_content = {want.path for want in wants if want.content}
    scored = dict.fromkeys(want.path for want in wants if want.path)
    files = {path: await keeper.scored(path, content=path in with_content) for path in scored}
    texts: dict[str, TextSeen] = {want.text: await keeper.text(want.text) for want in wants if want.text}
    if "log" in terms.expected_artifacts:
        await keeper.made("log", "stdout", (await keeper.said("stdout"))[0], "text/plain")
    evidence = Evidence(exit_code=exit_code, files=files, texts=texts)
    if wants:
        await keeper.made("evidence", "evidence.json", msgspec.json.encode(evidence), "application/json")
    await keeper.rest()
    return Gathered(
        evidence=evidence,
        artifacts=tuple(keeper.refs.values()),
        missing=tuple(missing),
        notes=tuple(keeper.notes),
    )


class _Keeper:
    """Keeps what was found, most wanted first, and refers to it."""

    def __init__(self, attempt: Attempt, looked: Looked, at: dict[str, tuple[Seen, ...]]) -> None:
        self.refs: dict[tuple[str, str], ArtifactRef] = {}
        self.notes: list[str] = ["there are more files than can be listed"] if looked.cut_off else []
        self._attempt = attempt
        self._collector = Collector(attempt.site.transport, Shelf(attempt.house.home.artifacts))
        self._looked = looked
        self._at = at
        self._own = {_below(looked.roots[0], seen): seen for seen in looked.artifacts}

    async def expected(self, kind: str) -> bool:
        """Keep an expected artifact: a file of that name, with any ending, in its directory; or a path."""
        own = [name for name in sorted(self._own) if _is_named(name, kind)]
        kept = [await self._keep(kind, "artifacts", name, self._own[name]) for name in own]
        if not own:
            found = [seen for seen in self._at[kind] if seen.kind == "file"]
            kept = [await self._keep(kind, "workspace", _below(self._looked.roots[1], seen), seen) for seen in found]
        return any(kept)

    async def scored(self, path: str, *, content: bool) -> FileSeen:
        """A file that scorers look at; `content`: also into it."""
        seen = self._at[path][0]
        place: Place = "workspace"
        if seen.kind == "absent" and path in self._own:
            seen, place = self._own[path], "artifacts"
        if seen.kind != "file":
            return FileSeen(found=seen.kind)
        if not content:
            return FileSeen(found="file", size=seen.size, fresh=seen.fresh)
        kept = await self._collector.keep(seen)
        root = self._looked.roots[0 if place == "artifacts" else 1]
        await self._keep("scored", place, _below(root, seen), seen)
        return FileSeen(found="file", size=kept.size, fresh=seen.fresh, sha256=kept.sha256, note=kept.note)

    async def said(self, name: str) -> tuple[bytes, bool]:
        """What a session said, and whether that is all of it."""
        if name == "final_message":
            directory = self._attempt.house.home.task_dir(self._attempt.task.uid)
            return last_words(directory, self._attempt.session.id).final.encode("utf-8", "replace"), True
        return await tail(self._attempt, name)

    async def text(self, name: str) -> TextSeen:
        """What a scorer looks at that is no file."""
        data, whole = await self.said(name)
        sha256 = await self.made(name, name, data, "text/plain")
        return TextSeen(sha256=sha256, size=len(data), whole=whole)

    async def made(self, kind: str, path: str, data: bytes, mime_type: str) -> str:
        """Keep something that Fleet made itself."""
        sha256 = await self._collector.text(data)
        self.refs[("fleet", kind)] = ArtifactRef(
            kind=kind, path=path, sha256=sha256, size=len(data), mime_type=mime_type, place="fleet"
        )
        return sha256

    async def rest(self) -> None:
        """Keep what else is in the artifact directory."""
        for name in sorted(self._own):
            await self._keep(PurePosixPath(name).name.split(".")[0] or name, "artifacts", name, self._own[name])

    async def _keep(self, kind: str, place: Place, name: str, seen: Seen) -> bool:
        if (place, name) in self.refs:
            return True
        kept = await self._collector.keep(seen)
        if kept.note:
            self.notes.append(f"{name}: {kept.note}")
        if kept.sha256 is None:
            return False
        self.refs[(place, name)] = ArtifactRef(
            kind=kind,
            path=name,
            sha256=kept.sha256,
            size=kept.size,
            mime_type=guess_type(name)[0] or BINARY,
            place=place,
        )
        return True


async def tail(attempt: Attempt, stream: str) -> tuple[bytes, bool]:
    """The end of what a session wrote, and whether that is all of it."""
    end = attempt.progress.cursor if stream == "stdout" else MOST_TEXT
    start = max(0, end - MOST_TEXT)
    path, data = f"{attempt.hosted.directory}/{stream}", b""
    while piece := await attempt.site.transport.get(path, offset=start + len(data), limit=MOST_TEXT - len(data)):
        data += piece
        if len(data) >= MOST_TEXT:
            break
    return data, start == 0


def _is_named(name: str, kind: str) -> bool:
    return name == kind or (name.startswith(f"{kind}.") and "/" not in name[len(kind) :])


def _below(root: str, seen: Seen) -> str:
    """Where a file is, as a receipt can say it: a name may be any bytes."""
    name = seen.path.removeprefix(root).removeprefix("/") or seen.path
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
