"""The page's files fit together, and ask nobody else for anything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import duologue

PAGE = Path(duologue.__file__).parent / "web_demo"
FILES = sorted(path for path in PAGE.rglob("*") if path.is_file())
MODULES = [path for path in FILES if path.suffix == ".js"]
INDEX = (PAGE / "index.html").read_text()
IMPORT = re.compile(r"""from "([^"]+)"|new URL\("(\./[^"]+)", import\.meta\.url\)""")
ID_IN_SCRIPT = re.compile(r"""(?:byId\((?:\w+, )?|getElementById\()"([\w-]+)"\)""")


def of_page(path: Path) -> str:
    return path.relative_to(PAGE).as_posix()


@pytest.mark.parametrize("module", MODULES, ids=of_page)
def test_every_import_is_a_file_of_the_page(module: Path) -> None:
    for names in IMPORT.findall(module.read_text()):
        name = next(filter(None, names))
        assert name.startswith("."), f"{name}: the page has no packages"
        assert (module.parent / name).resolve() in FILES


@pytest.mark.parametrize("file", FILES, ids=of_page)
def test_nothing_is_asked_of_another_server(file: Path) -> None:
    namespace = "http://www.w3.org/2000/svg"
    text = file.read_text().replace(namespace, "")
    addresses = [a for a in re.findall(r"https?://[\w.]+", text) if a != "http://localhost"]
    assert addresses == []


def test_everything_that_the_document_links_to_is_there() -> None:
    links = re.findall(r'(?:href|src)="([^"#]+)"', INDEX)
    assert links
    for link in links:
        assert (PAGE / link).is_file(), link


def test_every_element_that_a_script_looks_for_is_in_the_document() -> None:
    wanted = {name for module in MODULES for name in ID_IN_SCRIPT.findall(module.read_text())}
    assert len(wanted) > 20
    assert wanted - set(re.findall(r'id="([\w-]+)"', INDEX)) == set()


def test_every_colour_that_is_used_is_defined() -> None:
    styles = "".join(path.read_text() for path in FILES if path.suffix == ".css")
    used = set(re.findall(r"var\(--([\w-]+)\)", styles))
    defined = set(re.findall(r"--([\w-]+):", styles)) | {"share"}
    assert used - defined == set()


def test_nothing_runs_that_is_not_a_file_of_the_page() -> None:
    assert "script-src 'self'" in INDEX
    assert "default-src 'none'" in INDEX
    assert re.search(r"<script(?![^>]*src=)", INDEX) is None
    assert re.search(r"\son\w+=|\sstyle=", INDEX) is None


@pytest.mark.parametrize("module", MODULES, ids=of_page)
def test_a_module_begins_with_what_it_is_for(module: Path) -> None:
    assert module.read_text().startswith("/**")
