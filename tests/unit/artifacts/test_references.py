from __future__ import annotations

from pathlib import Path

import pytest

from duologue.artifacts import ArtifactSettings, Store
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


def test_a_file_of_a_local_folder_is_found_in_the_first_that_has_it(tmp_path: Path) -> None:
    for name in ("b", "c"):
        (tmp_path / name / "model").mkdir(parents=True)
        (tmp_path / name / "model" / "weights").touch()
    folders = tuple(tmp_path / name for name in ("a", "b", "c"))
    store = Store(ArtifactSettings(cache_dir=tmp_path, folders=folders))
    found = resolve_references(["folder:model/weights", "folder:model"], store)
    assert found == [str(tmp_path / "b/model/weights"), str(tmp_path / "b/model")]
    assert references_in("folder:model") == set()


@pytest.mark.parametrize(("folders", "where"), [((), "since none is set"), (("x",), "x")])
def test_a_file_that_no_folder_has_is_named(
    tmp_path: Path, folders: tuple[str, ...], where: str
) -> None:
    store = Store(ArtifactSettings(cache_dir=tmp_path, folders=tuple(map(Path, folders))))
    with pytest.raises(ArtifactMissing, match=f"there is no model/weights in .*{where}"):
        resolve_references("folder:model/weights", store)
