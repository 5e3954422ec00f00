from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from duologue.artifacts.download import Patience, Wanted, download, part_of
from duologue.artifacts.errors import (
    AccessRefused,
    CacheError,
    PullCancelled,
    SourceUnavailable,
    WrongHash,
)
from tests.unit.artifacts.file_server import FileServer, Misbehaviour
from tests.unit.artifacts.scene import Watcher, sha256, some_bytes

CONTENT = some_bytes(1_000_000, seed=7)
WANTED = Wanted("model.bin", len(CONTENT), sha256(CONTENT))
PATH = "/model.bin"


class Case:
    """One download of CONTENT from the server into a folder."""

    def __init__(self, folder: Path, server: FileServer) -> None:
        self.target = folder / "model.bin"
        self.part = part_of(self.target)
        self.url = server.add(PATH, CONTENT)
        self.server = server
        self.misbehaves = server.misbehaves[PATH]
        self.cancel = threading.Event()
        self.watcher = Watcher()

    def run(self, url: str | None = None, retries: int = 3, wanted: Wanted = WANTED) -> None:
        task = self.watcher.begin("download", wanted.size_bytes)
        patience = Patience(timeout_s=5, retries=retries, retry_wait_s=0)
        download(url or self.url, self.target, wanted, patience, task, self.cancel)

    @property
    def ranges(self) -> list[str]:
        return self.server.ranges_of(PATH)

    @property
    def steps(self) -> list[int]:
        return self.watcher.tasks["download"].steps


@pytest.fixture
def case(tmp_path: Path, server: FileServer) -> Case:
    return Case(tmp_path, server)


def test_a_file_arrives_whole_with_its_progress(case: Case) -> None:
    case.run()
    assert case.target.read_bytes() == CONTENT
    assert not case.part.exists()
    assert case.steps[-1] == len(CONTENT)
    assert case.steps == sorted(case.steps)


def test_a_broken_download_goes_on_in_the_same_run(case: Case) -> None:
    case.misbehaves += [
        Misbehaviour(cut_after_bytes=300_000),
        Misbehaviour(cut_after_bytes=400_000),
    ]
    case.run()
    assert case.target.read_bytes() == CONTENT
    assert case.ranges == ["", "bytes=300000-", "bytes=700000-"]


def test_a_download_goes_on_where_an_earlier_run_stopped(case: Case) -> None:
    case.part.write_bytes(CONTENT[:600_000])
    case.run()
    assert case.target.read_bytes() == CONTENT
    assert case.ranges == ["bytes=600000-"]
    assert case.steps[0] == 600_000


def test_a_complete_part_asks_for_nothing(case: Case) -> None:
    case.part.write_bytes(CONTENT)
    case.run()
    assert case.target.read_bytes() == CONTENT
    assert case.ranges == []


def test_a_part_of_another_file_is_thrown_away_once(case: Case) -> None:
    case.part.write_bytes(b"x" * 600_000)
    case.run()
    assert case.target.read_bytes() == CONTENT
    assert case.ranges == ["bytes=600000-", ""]


def test_a_part_that_is_too_long_is_thrown_away(case: Case) -> None:
    case.part.write_bytes(bytes(len(CONTENT) + 1))
    case.run()
    assert case.target.read_bytes() == CONTENT
    assert case.ranges == [""]


def test_a_server_without_ranges_sends_it_all_again(case: Case) -> None:
    case.misbehaves += [
        Misbehaviour(cut_after_bytes=300_000),
        Misbehaviour(ignores_range=True),
    ]
    case.run()
    assert case.target.read_bytes() == CONTENT
    assert 0 in case.steps[1:]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(case: Case, status: int) -> None:
    case.misbehaves += [Misbehaviour(status=status), Misbehaviour(status=status)]
    case.run()
    assert case.target.read_bytes() == CONTENT


def test_a_range_that_the_server_cannot_satisfy_starts_over(case: Case) -> None:
    case.part.write_bytes(CONTENT[:600_000])
    case.misbehaves.append(Misbehaviour(status=416))
    case.run()
    assert case.target.read_bytes() == CONTENT
    assert case.ranges == ["bytes=600000-", ""]


def test_tries_without_a_new_byte_end_and_keep_what_came(case: Case) -> None:
    case.misbehaves.append(Misbehaviour(cut_after_bytes=300_000))
    case.misbehaves += [Misbehaviour(status=503)] * 3
    with pytest.raises(SourceUnavailable, match=r"503.*goes on from there"):
        case.run(retries=3)
    assert case.part.read_bytes() == CONTENT[:300_000]
    assert not case.target.exists()
    case.run()
    assert case.target.read_bytes() == CONTENT


def test_a_missing_file_is_not_asked_for_again(case: Case) -> None:
    with pytest.raises(SourceUnavailable, match="404"):
        case.run(case.server.url + "/absent")
    assert case.server.ranges_of("/absent") == [""]


@pytest.mark.parametrize("status", [401, 403, 407])
def test_a_refusal_is_told_apart(case: Case, status: int) -> None:
    case.misbehaves.append(Misbehaviour(status=status))
    with pytest.raises(AccessRefused, match=str(status)):
        case.run()


def test_a_wrong_hash_is_refused_with_both_hashes_and_nothing_is_kept(case: Case) -> None:
    forged = b"x" + CONTENT[1:]
    case.server.add(PATH, forged)
    with pytest.raises(WrongHash) as caught:
        case.run()
    assert sha256(CONTENT) in caught.value.message
    assert sha256(forged) in caught.value.message
    assert not case.part.exists()
    assert not case.target.exists()


@pytest.mark.parametrize("length", [10, len(CONTENT) + 10])
def test_a_file_of_another_length_is_not_even_begun(case: Case, length: int) -> None:
    case.part.write_bytes(CONTENT[:5])
    case.server.add(PATH, bytes(length))
    with pytest.raises(SourceUnavailable, match=f"announces {length} bytes.*login page"):
        case.run()
    assert case.part.read_bytes() == CONTENT[:5]


def test_nobody_listening_is_a_reason(case: Case) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        free_port = held.getsockname()[1]
    with pytest.raises(SourceUnavailable, match="Connection refused"):
        case.run(f"http://127.0.0.1:{free_port}/model.bin", retries=1)


def test_a_name_that_nobody_knows_is_a_reason_at_once(case: Case) -> None:
    with pytest.raises(SourceUnavailable, match="Is there a network"):
        case.run("http://no-such-host.invalid/model.bin", retries=100)


def test_a_stop_keeps_what_came(case: Case) -> None:
    case.watcher.on_bytes = lambda label, done_bytes: (
        case.cancel.set() if done_bytes >= 300_000 else None
    )
    with pytest.raises(PullCancelled, match="goes on from here"):
        case.run()
    kept = case.part.read_bytes()
    assert 300_000 <= len(kept) < len(CONTENT)
    assert kept == CONTENT[: len(kept)]


def test_a_stop_ends_the_wait_between_tries(case: Case) -> None:
    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            case.cancel.set()
            return True

    case.misbehaves.append(Misbehaviour(status=503, waits_for=Stop()))
    with pytest.raises(PullCancelled):
        case.run()
    assert case.ranges == [""]
    assert not case.part.exists()


def test_after_a_stop_nothing_is_begun(case: Case) -> None:
    case.cancel.set()
    with pytest.raises(PullCancelled):
        case.run()
    assert case.ranges == []


def test_a_full_disk_is_told(case: Case) -> None:
    case.part.symlink_to("/dev/full")
    with pytest.raises(CacheError, match=r"No space left on device.*larger disk"):
        case.run()


def test_an_index_that_is_a_folder_is_read(case: Case, tmp_path: Path) -> None:
    source = tmp_path / "with space.whl"
    source.write_bytes(CONTENT)
    case.run(source.as_uri())
    assert case.target.read_bytes() == CONTENT
    case.target.unlink()
    with pytest.raises(SourceUnavailable, match="No such file"):
        case.run((tmp_path / "absent.whl").as_uri())
