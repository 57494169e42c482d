"""Take over a Fleet Manager's config.yaml, a runtime.toml or a file of alerts: all of it, or nothing."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from fleet.config import secrets
from fleet.config.edit import Change, Draft, check, lock_path, open_draft, save
from fleet.config.fields import find
from fleet.config.files import locked
from fleet.config.foreign import parse_manager, parse_names
from fleet.config.home import Home, require
from fleet.config.load import parse, read_text
from fleet.config.render import host_table
from fleet.config.render import table as table_text
from fleet.config.runtime import parse_runtime
from fleet.config.specs.problems import shape_problems
from fleet.errors import ConfigError, NotFound, UsageError
from fleet.model.alert_spec import Alerts

WEBHOOK = "FLEET_WEBHOOK_URL"


class Imported(msgspec.Struct, frozen=True):
    """What an import did."""

    changes: list[Change]
    notes: list[str]


def import_file(home: Home, path: Path, names_file: Path | None = None) -> Imported:
    """Carry what a foreign file says into fleet.toml. A second time changes nothing more.

    `names_file` gives the machines of a config.yaml their semantic names.
    """
    require(home)
    text = _text(path)
    names = parse_names(_text(names_file), names_file) if names_file else {}
    if names_file and _is_runtime(text, path):
        raise UsageError("a runtime.toml has no machines to name", hint="leave --names away")
    with locked(lock_path(home)):
        draft = open_draft(home)
        parse(draft.text, home.toml)  # import into a file that works, or say what is wrong with it
        done = Imported([], [])
        secret = None
        if (alerts := _alerts_in(text, path)) is not None:
            _take_alerts(draft, alerts, done)
        elif _is_runtime(text, path):
            runtime = parse_runtime(text, path)
            _set_all(draft, {f"supervisor.{name}": value for name, value in runtime.values.items()}, done)
            done.notes.extend(runtime.notes)
        else:
            secret = _take_manager(home, draft, parse_manager(text, path), names, done)
        check(home, draft)
        if secret is not None:
            secrets.put(home, WEBHOOK, secret)  # first: a name without a value would be worse than the reverse
        if done.changes:
            save(home, draft)
    return done


def _text(path: Path) -> str:
    text = read_text(path)
    if text is None:
        raise NotFound(f"there is no file {path}")
    return text


def _alerts_in(text: str, path: Path) -> Alerts | None:
    """The alerts that a file of JSON declares; None where it is none."""
    if path.suffix != ".json" and not text.lstrip().startswith("{"):
        return None
    try:
        table = msgspec.json.decode(text)
    except msgspec.DecodeError as exc:
        raise ConfigError(f"{path.name}: not JSON: {exc}", hint=f"the file is {path}") from exc
    found = shape_problems(table, Alerts, ())
    if found:
        lines = [f"{path.name}: {problem.key}: {problem.text}" for problem in found]
        raise ConfigError("\n".join(lines), hint=f"the file is {path}")
    made: Alerts = msgspec.convert(table, Alerts)
    return made


def _take_alerts(draft: Draft, alerts: Alerts, done: Imported) -> None:
    """Put alerts into the draft: what is sent, the channels, the routes."""
    values: dict[str, Any] = {"alerts.enabled": alerts.enabled, "alerts.dry_run": alerts.dry_run}
    for name, adapter in alerts.adapters.items():
        for field, value in msgspec.to_builtins(adapter).items():
            values[f"channels.{name}.{field}"] = value
    _set_all(draft, values, done)
    for route in alerts.routes:
        given = {"channel": route.adapter, "events": list(route.events), "teams": list(route.teams)}
        given["labels"] = [f"{name}={value}" for name, value in route.labels.items()]
        wanted = {name: value for name, value in given.items() if value}
        if wanted not in draft.table.get("routes", []):
            draft.add("routes", wanted, table_text("[[routes]]", wanted))
            done.changes.append(Change("routes", None, wanted))


def _is_runtime(text: str, path: Path) -> bool:
    """Whether the file is TOML: by its name, else by what it says."""
    if path.suffix in (".yaml", ".yml", ".toml"):
        return path.suffix == ".toml"
    try:
        return bool(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return False


def _take_manager(home: Home, draft: Draft, table: dict[str, Any], names: dict[str, str], done: Imported) -> str | None:
    """Put a config.yaml into the draft; what is left is the webhook's address, where it is new."""
    sprites = table.get("sprites", [])
    _add_sprites(draft, sprites, names, done)
    done.notes.extend(f"{each} has a name, but is none of the sprites" for each in names if each not in sprites)
    _set_all(draft, {f"timeouts.{name}": value for name, value in table.get("timeouts", {}).items()}, done)
    address = table.get("alerts", {}).get("webhook_url")
    if address is None:
        return None
    wanted: dict[str, Any] = {"alerts.webhook_env": WEBHOOK, "alerts.enabled": True} if address else {}
    _set_all(draft, wanted or {"alerts.webhook_env": ""}, done)
    if not address or secrets.read(home).get(WEBHOOK) == address:
        return None
    done.notes.append(f"the webhook's address went to {home.secrets} as {WEBHOOK}; fleet.toml only names it")
    return str(address)


def _set_all(draft: Draft, values: dict[str, Any], done: Imported) -> None:
    for key, value in values.items():
        field = find(key)
        assert field is not None  # the foreign file has been checked against these very fields
        old = draft.value(field)
        if old != value or not draft.stated(field):
            draft.set(field, value)
            done.changes.append(Change(key, old, value))


def _add_sprites(draft: Draft, sprites: list[str], names: dict[str, str], done: Imported) -> None:
    """Each sprite becomes a host, or changes the one that it is already. `status` wakes them, as their manager did."""
    for api_name in dict.fromkeys(sprites):
        hosts: list[dict[str, Any]] = draft.table.get("hosts", [])
        name = names.get(api_name, api_name)
        wanted = {"name": name, "kind": "sprite", "api_name": api_name}
        place = _place_of(hosts, name, api_name)
        if place is None:
            draft.add("hosts", wanted, host_table(wanted))
            done.changes.append(Change(f"hosts.{name}", None, wanted))
            continue
        if api_name not in names and _is_sprite(hosts[place], api_name):
            continue  # perhaps under a better name
        was = hosts[place]["name"]
        for key, value in wanted.items():
            old = hosts[place].get(key)
            if old != value:
                draft.set_host(place, key, value)
                done.changes.append(Change(f"hosts.{was}.{key}", old, value))
    if sprites:
        _set_all(draft, {"status.wake": True}, done)


def _place_of(hosts: list[dict[str, Any]], name: str, api_name: str) -> int | None:
    """Which host is meant: the sprite itself, else one that has its name."""
    sprite = next((at for at, host in enumerate(hosts) if _is_sprite(host, api_name)), None)
    return sprite if sprite is not None else next((at for at, host in enumerate(hosts) if host["name"] == name), None)


def _is_sprite(host: dict[str, Any], api_name: str) -> bool:
    """Whether a host of fleet.toml is that sprite already, perhaps under a better name."""
    called = host.get("api_name") or host["name"]
    return host.get("kind", "sprite") == "sprite" and bool(called == api_name)
