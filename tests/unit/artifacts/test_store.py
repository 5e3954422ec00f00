from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from duologue.artifacts.errors import ArtifactMissing, PullFailed, UnknownArtifact, WrongHash
from duologue.artifacts.manifest import Manifest
from duologue.artifacts.settings import SourceKind
from duologue.artifacts.store import State, Store
from duologue.core.installation import duologue_command
from tests.unit.artifacts.scene import Scene


def state_of(store: Store, artifact_id: str) -> State:
    return next(each.state for each in store.status() if each.artifact.id == artifact_id)


def without_library(scene: Scene) -> Manifest:
    """The scene's manifest, in which the library's distribution is not installed."""
    library = msgspec.structs.replace(scene.manifest.get("lib"), distribution="not-installed-here")
    return msgspec.structs.replace(
        scene.manifest, artifacts=(*scene.manifest.artifacts[:2], library)
    )


def test_a_missing_artifact_is_not_fetched_but_said_how(scene: Scene) -> None:
    store = scene.store()
    with pytest.raises(ArtifactMissing, match="duologue models pull voice"):
        store.path("voice")
    assert scene.server.asked == []
    assert scene.files_below("cache") == []


def test_an_unknown_artifact_is_told(scene: Scene) -> None:
    for look in (scene.store().path, lambda name: scene.store().pull([name])):
        with pytest.raises(UnknownArtifact, match="voice, ear, lib"):
            look("nose")


def test_a_path_is_the_entry_or_the_folder(scene: Scene) -> None:
    store = scene.store()
    scene.pull(store, "voice", "ear")
    models = scene.tmp_path / "cache" / "models"
    assert store.path("voice") == models / "voice" / "voice.gguf"
    assert store.path("ear") == models / "ear"


def test_a_library_is_found_where_it_is_installed(scene: Scene) -> None:
    import yaml

    assert scene.store().path("lib") == Path(yaml.__file__)


def test_states_follow_the_files(scene: Scene) -> None:
    store = scene.store()
    assert state_of(store, "ear") is State.MISSING
    assert state_of(store, "lib") is State.READY
    scene.pull(store, "ear")
    assert state_of(store, "ear") is State.READY
    (store.path("ear") / "tokens.txt").write_bytes(b"cut off")
    assert state_of(store, "ear") is State.INCOMPLETE
    with pytest.raises(ArtifactMissing, match="ear is incomplete"):
        store.path("ear")


def test_a_check_of_right_files_has_no_complaint(scene: Scene) -> None:
    store = scene.store()
    scene.pull(store, "voice", "ear", "lib")
    verdicts = store.verify(["voice", "ear", "lib"], scene.watcher)
    assert [verdict.problems for verdict in verdicts] == [(), (), ()]
    assert scene.watcher.tasks["check voice voice.gguf"].steps[-1] == len(scene.voice)


def test_a_check_removes_a_wrong_file_so_that_a_pull_brings_it_anew(scene: Scene) -> None:
    store = scene.store()
    scene.pull(store, "voice")
    path = store.path("voice")
    path.write_bytes(bytes(len(scene.voice)))
    (verdict,) = store.verify(["voice"])
    (problem,) = verdict.problems
    assert isinstance(problem, WrongHash)
    anew = duologue_command("models pull voice")
    assert f"It was removed; get it anew with: {anew}" in problem.message
    assert not path.exists()
    scene.pull(store, "voice")
    assert path.read_bytes() == scene.voice


def test_a_check_of_what_is_not_here_says_so(scene: Scene) -> None:
    (verdict,) = scene.store().verify(["ear"])
    assert "duologue models pull ear" in verdict.problems[0].message


def test_a_library_that_is_not_installed_is_told_and_the_rest_is_pulled(scene: Scene) -> None:
    store = Store(scene.settings(), without_library(scene), scene.index)
    with pytest.raises(ArtifactMissing, match=r"pip install 'duologue\[local\]'"):
        scene.pull(store, "ear", "lib")
    assert state_of(store, "ear") is State.READY
    assert state_of(store, "lib") is State.MISSING
    with pytest.raises(ArtifactMissing, match="is part of not-installed-here"):
        store.path("lib")
    assert store.status()[-1].path is None


def test_failures_of_weights_and_libraries_are_told_together(scene: Scene) -> None:
    scene.server.files.clear()
    store = Store(scene.settings(SourceKind.HUB), without_library(scene), scene.index)
    with pytest.raises(PullFailed) as caught:
        scene.pull(store, "voice", "ear", "lib")
    assert len(caught.value.errors) == 3


def test_a_library_of_another_version_is_not_what_was_measured(scene: Scene) -> None:
    library = scene.manifest.get("lib")
    other = msgspec.structs.replace(library.files[0], sha256="0" * 64)
    manifest = msgspec.structs.replace(
        scene.manifest, artifacts=(msgspec.structs.replace(library, files=(other,)),)
    )
    (verdict,) = Store(scene.settings(), manifest, scene.index).verify(["lib"])
    assert "pip install --force-reinstall --no-deps PyYAML==" in verdict.problems[0].message
    assert scene.store().path("lib").exists()


def test_the_shipped_manifest_is_the_default(scene: Scene) -> None:
    assert "silero-vad" in Store(scene.settings()).manifest.ids
