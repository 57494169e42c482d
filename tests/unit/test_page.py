"""The page of the dashboard: plain files, whole in themselves, with nothing that its strict policy would refuse."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

PAGE = Path(str(files("fleet.api"))) / "page"
MODULES = sorted(PAGE.glob("*.js"))
IMPORT = re.compile(r'^(?:import|export) [^"]*? ?from "([^"]+)";$', re.MULTILINE | re.DOTALL)
FORBIDDEN = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "eval(",
    "new Function",
    "window.confirm",
    'setAttribute("style"',
    "localStorage",
    "import(",
)
NAMESPACE = "http://www.w3.org/2000/svg"  # a name, which nothing asks for
MOST_LINES = 250
LONGEST_LINE = 120


def imports(module: Path) -> list[str]:
    """What a module says it needs."""
    return IMPORT.findall(module.read_text())


def exports(module: Path) -> list[str]:
    """What a module offers to others."""
    return re.findall(r"^export (?:async )?(?:function\*?|class|const|let) (\w+)", module.read_text(), re.MULTILINE)


class Tags(HTMLParser):
    """Every tag of a page, with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep it."""
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_a_module_says_what_it_owns_and_is_short(module: Path) -> None:
    """Each begins with one line that says what it owns, and fits the size of all our modules."""
    lines = module.read_text().splitlines()
    assert lines[0].startswith("// Owns ")
    assert len(lines) <= MOST_LINES


@pytest.mark.parametrize(
    "path", [path for path in sorted(PAGE.iterdir()) if path.suffix != ".svg"], ids=lambda path: path.name
)
def test_a_file_of_the_page_is_read_without_scrolling(path: Path) -> None:
    """Lines are as long as those of our Python at most."""
    assert [line for line in path.read_text().splitlines() if len(line) > LONGEST_LINE] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_what_a_module_imports_is_there(module: Path) -> None:
    """Every import names a file beside it and, in it, something that is exported."""
    text = module.read_text()
    assert len(imports(module)) == len(re.findall(r"^import ", text, re.MULTILINE))
    for names, name in re.findall(r'^import \{([^}]*)\} from "\./([a-z]+\.js)";$', text, re.MULTILINE):
        exported = exports(PAGE / name)
        wanted = {each.strip() for each in names.split(",") if each.strip()}
        assert wanted <= set(exported), f"{name} does not export {wanted - set(exported)}"
        assert all(re.search(rf"\b{each}\b", text.partition("\n\n")[2]) for each in wanted), f"unused of {name}"


def test_what_is_exported_is_used() -> None:
    """Nothing is offered to other modules that none of them takes."""
    taken = {
        name.strip()
        for module in MODULES
        for names in re.findall(r"^import \{([^}]*)\}", module.read_text(), re.MULTILINE)
        for name in names.split(",")
    }
    assert {name for module in MODULES for name in exports(module)} - taken == set()


def test_every_module_is_reached_from_the_page() -> None:
    """No file lies there that nothing asks for."""
    reached, left = set[str](), ["main.js"]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += [each.removeprefix("./") for each in imports(PAGE / name)]
    assert reached == {path.name for path in MODULES}


@pytest.mark.parametrize("path", sorted(PAGE.iterdir()), ids=lambda path: path.name)
def test_nothing_becomes_markup_and_nothing_comes_from_elsewhere(path: Path) -> None:
    """Texts of agents go in as text alone; no file names another server, a data URL or an inline style."""
    text = path.read_text().replace(NAMESPACE, "")
    assert [word for word in FORBIDDEN if word in text] == []
    assert re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]|data:[a-z]+/|url\(|@import", text) == []


def test_the_page_has_no_inline_script_and_no_inline_style() -> None:
    """What its policy would refuse is not in it: scripts and styles are files of our own."""
    tags = Tags((PAGE / "index.html").read_text()).found
    for tag, attributes in tags:
        assert not [name for name in attributes if name == "style" or name.startswith("on")], tag
        assert tag != "style"
        if tag == "script":
            assert (attributes["src"] or "").startswith("/page/")
    asked = [
        attributes.get("src") or attributes.get("href") or "" for tag, attributes in tags if tag in ("script", "link")
    ]
    assert all((PAGE / each.removeprefix("/page/")).is_file() for each in asked)


def test_every_element_that_a_module_looks_up_is_in_the_page() -> None:
    """An id that is asked for by a module stands in index.html."""
    ids = {attributes.get("id") for _, attributes in Tags((PAGE / "index.html").read_text()).found}
    wanted = {name for module in MODULES for name in re.findall(r'byId\("([a-z-]+)"\)', module.read_text())}
    assert wanted <= ids
