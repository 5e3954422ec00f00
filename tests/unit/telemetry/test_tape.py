"""Recordings on disk: within their bound, and never at a call's cost."""

from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs

from duologue.telemetry.flight import SUFFIX
from duologue.telemetry.tape import BLOCK_BYTES, Recordings, Tape


def recordings(folder: Path, *, max_files: int = 10, max_bytes: int = 1 << 20) -> Recordings:
    return Recordings(folder, max_files=max_files, max_bytes=max_bytes, content=False)


def test_lines_lie_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    kept = recordings(tmp_path)
    tape = kept.tape("sess_1")
    lines = [b"%d " % n + b"x" * 5000 for n in range(40)]
    for line in lines:
        tape.add(line)
    tape.finish()
    tape.add(b"afterwards")
    kept.close()
    assert (tmp_path / f"sess_1{SUFFIX}").read_bytes().splitlines() == [*lines, b"afterwards"]


def test_lines_are_handed_over_in_blocks() -> None:
    blocks: list[bytes] = []

    def write(block: bytes) -> bool:
        blocks.append(block)
        return True

    tape = Tape(write, content=True)
    for _ in range(3):
        tape.add(b"x" * (BLOCK_BYTES // 2))
    assert len(blocks) == 1
    tape.finish()
    assert len(blocks) == 2


def test_the_oldest_recordings_go_by_number(tmp_path: Path) -> None:
    kept = recordings(tmp_path, max_files=3)
    for number in range(6):
        tape = kept.tape(f"sess_{number}")
        tape.add(b"line")
        tape.finish()
    kept.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"sess_{number}{SUFFIX}" for number in (3, 4, 5)
    ]


def test_all_of_them_stay_within_the_bytes(tmp_path: Path) -> None:
    kept = recordings(tmp_path, max_bytes=10_000)
    for number in range(6):
        tape = kept.tape(f"sess_{number}")
        tape.add(b"x" * 3_999)
        tape.finish()
    kept.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == 8_000


def test_a_call_that_fills_the_bound_alone_is_recorded_no_further(tmp_path: Path) -> None:
    kept = recordings(tmp_path, max_bytes=BLOCK_BYTES + 1000)
    tape = kept.tape("long")
    for _ in range(3):
        tape.add(b"x" * (BLOCK_BYTES - 1))
    tape.finish()
    kept.close()
    assert (tmp_path / f"long{SUFFIX}").stat().st_size == BLOCK_BYTES


def test_a_disk_that_refuses_ends_the_recording_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "taken"
    folder.write_text("a file stands where the folder should be")
    kept = recordings(folder)
    tape = kept.tape("sess")
    with capture_logs() as logs:
        tape.add(b"line")
        tape.finish()
        kept.close()
        tape.add(b"more")
    assert [log["event"] for log in logs] == ["recordings_stopped"]
