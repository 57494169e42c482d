"""The paths of a spec: where each task works, and that nothing it names leads out of there."""

from __future__ import annotations

import os
from collections.abc import Iterator

from fleet.config.fields import KeyPath
from fleet.config.problems import Problem
from fleet.model import scorer as sc
from fleet.model.spec import TaskSpec


def placed(task: TaskSpec, base: str) -> str:
    """The directory that a task works in, as an absolute path."""
    return os.path.normpath(os.path.join(base, os.path.expanduser(task.root or "")))


def path_problems(task: TaskSpec, path: KeyPath, base: str, *, here: bool = True) -> Iterator[Problem]:
    """What is wrong with the paths of a task, by their words and, where it works here, by what is on disk."""
    if not here:
        yield from _words_elsewhere(task, path)
        return
    root = placed(task, base)
    key: KeyPath = (*path, "cwd") if task.cwd is not None else (*path, "workspace", "root")
    wrong = list(_root_problems(task, path, base, root))
    if wrong:
        yield from wrong
        return
    if not os.path.isdir(root) and (task.workspace.repository is None or os.path.lexists(root)):
        yield Problem(key, f"{root} is not a directory")
        return
    real = os.path.realpath(root)
    for place, word in named_paths(task):
        said = _leads_out(word, root, real)
        if said:
            yield Problem((*path, *place), said)


def _root_problems(task: TaskSpec, path: KeyPath, base: str, root: str) -> Iterator[Problem]:
    written = task.workspace.root
    if written is None:
        return
    key = (*path, "workspace", "root")
    inside = os.path.normpath(os.path.join(base, os.path.expanduser(written)))
    if task.cwd is not None and os.path.realpath(inside) != os.path.realpath(root):
        yield Problem(key, f"{written} is not the directory of cwd, {task.cwd}; give one of them")
    elif ".." in written.split("/"):
        yield Problem(key, f"{written} leads out of {base}")
    elif not os.path.isabs(os.path.expanduser(written)) and not _is_below(os.path.realpath(inside), base):
        yield Problem(key, f"{written} is a link that leads out of {base}")


def _words_elsewhere(task: TaskSpec, path: KeyPath) -> Iterator[Problem]:
    """The directory is another machine's: only the words can be looked at."""
    written = task.workspace.root
    if task.cwd is not None and written is not None and task.cwd != written:
        yield Problem(
            (*path, "workspace", "root"), f"{written} is not the directory of cwd, {task.cwd}; give one of them"
        )
    key: KeyPath = (*path, "cwd") if task.cwd is not None else (*path, "workspace", "root")
    for place, word in ((key, task.root or ""), *(((*path, *place), word) for place, word in named_paths(task))):
        if word.startswith("~") or (os.path.isabs(word) and place != key):
            yield Problem(place, f"{word} must be relative to the workspace")
        elif ".." in word.split("/"):
            yield Problem(place, f"{word} leads out of the workspace")
        elif any(ord(char) < 32 for char in word):
            yield Problem(place, "a path is one printable line")


def named_paths(task: TaskSpec) -> Iterator[tuple[KeyPath, str]]:
    """Every path of a task that is relative to its workspace, and where it stands."""
    space = task.workspace
    lists: tuple[tuple[KeyPath, tuple[str, ...]], ...] = (
        (("workspace", "required_files"), space.required_files),
        (("workspace", "writable_paths"), space.writable_paths or ()),
        (("input_files",), task.input_files),
        (("expected_artifacts",), task.expected_artifacts),
        (("copy_files",), task.copy_files),
    )
    for place, words in lists:
        for number, word in enumerate(words):
            yield (*place, number), word
    if task.scorer is not None:
        for scorer, place in scorers(task.scorer, ("scorer",)):
            if isinstance(scorer, (sc.FileExists, sc.RegexMatch, sc.JsonPath)) and scorer.path is not None:
                yield (*place, "path"), scorer.path


def scorers(scorer: sc.AnyScorer, place: KeyPath) -> Iterator[tuple[sc.AnyScorer, KeyPath]]:
    """A scorer and those that it is made of, each with where it stands."""
    yield scorer, place
    if isinstance(scorer, (sc.All, sc.Any)):
        for number, part in enumerate(scorer.of):
            yield from scorers(part, (*place, "of", number))


def _leads_out(word: str, root: str, real: str) -> str:
    if os.path.isabs(word) or word.startswith("~"):
        return f"{word} must be relative to the workspace"
    if ".." in word.split("/"):
        return f"{word} leads out of the workspace"
    if any(ord(char) < 32 for char in word):
        return "a path is one printable line"
    if not _is_below(os.path.realpath(os.path.join(root, word)), real):
        return f"{word} is a link that leads out of the workspace"
    return ""


def _is_below(path: str, root: str) -> bool:
    root = os.path.realpath(root)
    return path == root or path.startswith(root.rstrip("/") + "/")
