from __future__ import annotations

import pytest
import yaml

from duologue.config.yaml_text import read_nodes


def test_values_come_with_the_lines_that_they_stand_on() -> None:
    node, values = read_nodes("gateway:\n  port: 9000\n")
    assert values == {"gateway": {"port": 9000}}
    ((_, section),) = node.value
    ((key, _),) = section.value
    assert key.start_mark.line == 1


def test_an_empty_text_has_neither() -> None:
    assert read_nodes("# nothing\n") == (None, None)


@pytest.mark.parametrize("text", ["a: [1", "a: !!python/name:os.system x", "a: 1\n---\nb: 2\n"])
def test_what_cannot_be_read_is_an_error_of_one_kind_with_a_place(text: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError) as caught:
        read_nodes(text)
    assert caught.value.problem_mark is not None


@pytest.mark.parametrize(
    "text", ["a: &a {b: *a}", "a: &a [[*a]]", "&a [*a]", "a: &a {b: {c: [1, *a]}}"]
)
def test_a_value_that_holds_itself_is_told_with_its_line(text: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError, match="holds itself"):
        read_nodes(text)


def test_a_value_that_stands_in_two_places_is_read() -> None:
    assert read_nodes("a: &a {x: 1}\nb: {c: *a, d: *a}")[1] == {
        "a": {"x": 1},
        "b": {"c": {"x": 1}, "d": {"x": 1}},
    }


@pytest.mark.parametrize("text", ["a: 2024-13-45", "a: !!int x", "a: !!timestamp x"])
def test_a_value_that_is_not_of_its_type_is_an_error_of_that_kind_too(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match="not of its type"):
        read_nodes(text)
