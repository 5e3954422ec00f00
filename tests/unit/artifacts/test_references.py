from __future__ import annotations

import pytest

from duologue.artifacts.errors import ArtifactMissing
from duologue.artifacts.references import references_in, resolve_references
from duologue.core.errors import ConfigError
from tests.unit.artifacts.scene import Scene


def test_references_become_paths_at_any_depth_and_the_rest_is_left_alone(scene: Scene) -> None:
    store = scene.store()
    scene.pull(store, "voice", "ear")
    settings = {"llm": {"model": "artifact:voice", "threads": 2}, "asr": [["artifact:ear", "ear"]]}
    assert resolve_references(settings, store) == {
        "llm": {"model": str(store.path("voice")), "threads": 2},
        "asr": [[str(store.path("ear")), "ear"]],
    }


def test_references_are_found_at_any_depth() -> None:
    settings = {"llm": {"model": "artifact:voice", "threads": 2}, "asr": [["artifact:ear", "ear"]]}
    assert references_in(settings) == {"voice", "ear"}


def test_a_reference_to_what_is_not_here_says_how_to_get_it(scene: Scene) -> None:
    with pytest.raises(ArtifactMissing, match="duologue models pull voice"):
        resolve_references({"model": "artifact:voice"}, scene.store())


def test_a_reference_to_nothing_is_an_error_of_the_settings(scene: Scene) -> None:
    with pytest.raises(ConfigError, match="no artifact 'nose'"):
        resolve_references(["artifact:nose"], scene.store())
