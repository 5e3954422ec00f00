"""Every line of the threat model names tests that hold it, and they exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
REFERENCE = re.compile(r"`(tests/[\w/]+\.py)::([\w*]+)`")
HEAD = "| What somebody could try | What holds | Held by |"


def rows() -> list[list[str]]:
    """The cells of each line of the tables."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    wanted = [line for line in lines if line != HEAD and not line.startswith("| ---")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in wanted]


def names_in(path: Path) -> set[str]:
    """What a test module defines, by name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.add(node.targets[0].id)
    return found


def test_there_are_lines_and_each_has_its_three_cells() -> None:
    assert len(rows()) > 25
    assert {len(row) for row in rows()} == {3}


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:50])
def test_a_line_names_tests_that_exist(row: list[str]) -> None:
    references = REFERENCE.findall(row[2])
    assert references, "no test holds this"
    assert len(references) == row[2].count("`") // 2, "something else stands among the tests"
    for file, name in references:
        path = ROOT / file
        assert path.is_file(), file
        defined = names_in(path)
        if name == "*":
            assert any(each.startswith("test_") for each in defined)
        else:
            assert name in defined, f"{file} has no {name}"
            assert name.startswith(("test_", "Test"))


def test_the_page_can_be_found() -> None:
    for page in ("README.md", "docs/operations.md"):
        assert "security.md" in (ROOT / page).read_text(encoding="utf-8")
