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
