"""Plugins: from a name to what it stands for, by entry point. Built-ins and strangers are found alike."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fleet import channels, coders, hosts, scorers
from fleet.errors import NotFound, UsageError
from fleet.model.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from importlib.metadata import EntryPoint

_BUILT_IN = {
    "channels": channels.BUILT_IN,
    "coders": coders.BUILT_IN,
    "hosts": hosts.BUILT_IN,
    "scorers": scorers.BUILT_IN,
}


def names(family: str) -> tuple[str, ...]:
    """All registered names of a family, sorted."""
    from importlib.metadata import entry_points

    found = {point.name for point in entry_points(group=f"fleet.{family}")}
    return tuple(sorted(found.union(_BUILT_IN.get(family, ()))))


def load(family: str, name: str) -> Any:
    """What a name stands for, made without arguments; imported only now. Built-in names win and cost no search.

    NotFound: nobody registered it. UsageError: what was registered cannot be made.
    """
    from importlib import import_module

    target = _BUILT_IN.get(family, {}).get(name)
    if target is None:
        point = _registered(family, name)
        with _translated(f"`{name}`, registered in `fleet.{family}`,"):
            return point.load()()
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)()


def load_file(place: str) -> Any:
    """What a class in a file of Python makes: `FILE:CLASS`."""
    from importlib.util import module_from_spec, spec_from_file_location
    from pathlib import Path

    file, _, attribute = place.rpartition(":")
    path = Path(file).expanduser()
    spec = spec_from_file_location(f"fleet_plugin_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise NotFound(f"{path} is no file of Python")
    module = module_from_spec(spec)
    with _translated(place):
        spec.loader.exec_module(module)
        return getattr(module, attribute)()


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """A stranger's code may raise anything, where it is imported and where it is made."""
    try:
        yield
    except (Exception, SystemExit) as exc:
        raise UsageError(f"{what} cannot be used: {type(exc).__name__}: {exc}") from exc


def _registered(family: str, name: str) -> EntryPoint:
    from importlib.metadata import entry_points

    found = entry_points(group=f"fleet.{family}", name=name)
    if not found:
        raise NotFound(
            f"nothing named `{name}` is registered in `fleet.{family}`",
            hint=f"registered: {', '.join(names(family)) or 'nothing'}",
        )
    return next(iter(found))


def check_coder(name: str, own: Collection[str] = ()) -> str:
    """A coder's name, if it is registered or among `own`, those of the settings. Built-in names cost no search."""
    if name in coders.BUILT_IN or name in own or name in names("coders"):
        return name
    known = sorted({*names("coders"), *own})
    near = nearest(name, known)
    raise UsageError(
        f"unknown coder `{name}`",
        hint=f"did you mean `{near}`?" if near else f"registered coders: {', '.join(known)}",
    )
