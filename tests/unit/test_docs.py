"""The documents say what the code does, and their links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from fleet import errors
from fleet.cli.commands import COMMANDS
from fleet.config.fields import SectionInfo, sections
from fleet.model.event import EVENTS, kind_of
from fleet.model.states import TASK_MOVES, TaskState

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
SHOWN = [ROOT / "README.md", *sorted((DOCS / "guides").glob("*.md"))]
LONGEST_ADR = 60


def named(page: Path) -> str:
    """A page, as a test calls it."""
    return str(page.relative_to(ROOT))


def reference(name: str) -> str:
    """The text of a reference page."""
    return (DOCS / "reference" / f"{name}.md").read_text("utf-8")


def script() -> ModuleType:
    """scripts/reference.py, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fenced(text: str) -> Iterator[str]:
    """The lines of all blocks of code."""
    for block in re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield from block.splitlines()


def prose(text: str) -> str:
    """The text without its code, where brackets are no links."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))


def anchors(text: str) -> set[str]:
    """The names under which the headings of a page can be linked to."""
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_reference_is_what_the_code_says() -> None:
    """Every generated page is the one that the code gives now; `make docs` writes them."""
    stale = [
        named(path) for path, text in script().pages().items() if not path.exists() or path.read_text("utf-8") != text
    ]
    assert stale == []


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_a_command_is_documented(name: str) -> None:
    """Every command has its part in the reference."""
    assert f"\n### fleet {name}\n" in reference("commands")


@pytest.mark.parametrize("section", sections(), ids=lambda section: section.name)
def test_a_setting_is_documented(section: SectionInfo) -> None:
    """Every setting stands in the reference, by its key."""
    page = reference("settings")
    within = f"{section.name}.NAME" if section.named else f"{section.name}[]"
    for field in section.fields:
        key = f"{within}.{field.name}" if section.many else field.key
        assert f"`{key}`" in page


@pytest.mark.parametrize("kind", [kind_of(event) for event in EVENTS])
def test_an_event_is_documented(kind: str) -> None:
    """Every kind of event has its part in the reference."""
    assert f"\n### {kind}\n" in reference("events")


@pytest.mark.parametrize(
    "name",
    [name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, errors.FleetError)],
)
def test_an_error_is_documented(name: str) -> None:
    """Every error stands in the reference."""
    assert f"| `{name}` |" in reference("errors")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page names a file that is there, and a heading in it where it names one."""
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text("utf-8"))):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", SHOWN, ids=named)
def test_shown_commands_exist(page: Path) -> None:
    """What the README and the guides type after `fleet` is a command."""
    known = {command.name for command in COMMANDS} | {"help"}
    typed = re.compile(r"(?:^(?:\$ )?|&& |\| |\$\()fleet (?:--home \S+ |--json )*([a-z][\w-]*)")
    words = {word for line in fenced(page.read_text("utf-8")) for word in typed.findall(line.strip())}
    assert words - known == set()


def test_the_readme_has_its_two_commands() -> None:
    """The README says how to install and run, and how to test, each in one command."""
    lines = list(fenced((ROOT / "README.md").read_text("utf-8")))
    assert any(line.startswith("sh scripts/install && ") for line in lines)
    assert "sh scripts/test" in lines


def test_every_page_is_in_the_index() -> None:
    """docs/README.md leads to every page below it."""
    listed = set(re.findall(r"\]\(([^)\s]+)\)", (DOCS / "README.md").read_text("utf-8")))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"}
    assert pages - listed == set()


def test_decisions_are_short_and_numbered() -> None:
    """The decisions are numbered without a gap, say the decision first, and fit on a page."""
    found = sorted((DOCS / "adr").glob("*.md"))
    assert [int(page.name[:4]) for page in found] == list(range(1, len(found) + 1))
    for page in found:
        text = page.read_text("utf-8")
        assert text.count("\n") <= LONGEST_ADR, page.name
        assert re.findall(r"^## (.+)$", text, re.MULTILINE)[0] == "Decision", page.name


def test_the_drawing_of_states_is_right() -> None:
    """Every arrow that is drawn between states of a task is a move that the table has."""
    text = (DOCS / "concepts" / "states.md").read_text("utf-8")
    arrows = re.findall(r"^    (\w+) --> (\w+)", text, re.MULTILINE)
    assert arrows
    assert [(old, new) for old, new in arrows if TaskState(new) not in TASK_MOVES[TaskState(old)]] == []
