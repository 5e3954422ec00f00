from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import ConfigError
from duologue.engines.pipeline_source import MAX_DEPTH, merged, read_source

BASE = """
name: base
stages:
  - name: one
    runner: tone
    settings: {chunk_ms: [100], ms_per_character: 5}
  - name: two
    runner: script
"""

TREES = st.recursive(
    st.integers() | st.text("ab", max_size=2),
    lambda below: st.dictionaries(st.sampled_from("abc"), below, max_size=3),
    max_leaves=8,
)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_adds_to_what_it_extends_key_by_key_and_stage_by_stage(tmp_path: Path) -> None:
    write(tmp_path, "base.yaml", BASE)
    mine = write(
        tmp_path,
        "mine.yaml",
        "extends: base.yaml\nname: mine\nstages:\n"
        "  - {name: one, settings: {chunk_ms: [20, 40]}}\n  - {name: three, runner: tone}\n",
    )

    source = read_source(mine, tmp_path)

    assert source.tree == {
        "name": "mine",
        "stages": [
            {
                "name": "one",
                "runner": "tone",
                "settings": {"chunk_ms": [20, 40], "ms_per_character": 5},
            },
            {"name": "two", "runner": "script"},
            {"name": "three", "runner": "tone"},
        ],
    }
    assert source.origins["stages.one.runner"] == f"{tmp_path / 'base.yaml'}:5"
    assert source.origins["stages.one.settings.chunk_ms"] == f"{mine}:4"
    assert source.origins["name"] == f"{mine}:2"


def test_a_pipeline_that_ships_is_extended_by_its_name(tmp_path: Path) -> None:
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    write(shipped, "base.yaml", BASE)
    mine = write(tmp_path, "mine.yaml", "extends: base\nname: mine")
    assert len(read_source(mine, shipped).tree["stages"]) == 2


def test_files_that_extend_each_other_in_a_circle_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "b.yaml", "extends: a.yaml")
    with pytest.raises(ConfigError, match=r"circle: a.yaml -> b.yaml -> a.yaml"):
        read_source(write(tmp_path, "a.yaml", "extends: b.yaml"), tmp_path)


def test_so_are_too_many(tmp_path: Path) -> None:
    for number in range(MAX_DEPTH + 1):
        write(tmp_path, f"{number}.yaml", f"extends: {number + 1}.yaml")
    with pytest.raises(ConfigError, match=f"more than {MAX_DEPTH}"):
        read_source(tmp_path / "0.yaml", tmp_path)


@pytest.mark.parametrize("text", ["extends: 5", "extends: [a]", "extends: nowhere"])
def test_what_cannot_be_extended_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"extends|nowhere"):
        read_source(write(tmp_path, "a.yaml", text), tmp_path)


@given(TREES)
def test_merging_with_itself_or_with_nothing_changes_nothing(tree: object) -> None:
    assert merged(tree, tree) == tree
    assert merged({}, tree) == tree


@given(TREES, TREES)
def test_what_is_said_over_it_holds(base: object, over: object) -> None:
    assert merged(merged(base, over), over) == merged(base, over)
