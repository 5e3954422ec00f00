from __future__ import annotations

from collections.abc import Iterator

import pytest

from duologue.engines.arbiter.board import Board
from duologue.engines.arbiter.devices import Devices
from duologue.engines.arbiter.sharing import SharedDevice
from duologue.engines.messages import Share
from duologue.engines.pipeline import StageSpec

CALLS = StageSpec(name="calls", runner="script", devices=("cpu",), deadline_ms=80)
PICTURES = StageSpec(name="pictures", runner="sketch", devices=("cpu", "gpu"), replicas=2)


@pytest.fixture
def devices() -> Iterator[Devices]:
    devices = Devices({"cpu": SharedDevice(["calls/0", "pictures/0"], 0.08, 1000)})
    yield devices
    devices.close()


def test_workers_are_told_their_board_and_seat(devices: Devices) -> None:
    (calls,) = devices.shares_of("calls", CALLS)
    pictures, alone = devices.shares_of("pictures", PICTURES)
    assert calls is not None
    assert calls == Share(board=calls.board, seat=0, device="cpu", period_s=0.08)
    assert pictures == Share(board=calls.board, seat=1, device="cpu")
    assert alone is None


def test_what_a_lost_worker_held_is_free(devices: Devices) -> None:
    (calls,) = devices.shares_of("calls", CALLS)
    assert calls is not None
    board = Board.opened_again(calls.board)
    board.sit(1, is_batch=True)
    with board.deciding() as arbiter:
        arbiter.take_bytes(1, 250, now=1.0)
    assert (devices.held_bytes, devices.fill) == (250, 0.25)
    devices.left("pictures/0")
    devices.left("somebody/0")
    assert (devices.held_bytes, devices.fill) == (0, 0.0)
    board.close()


def test_without_shared_devices_there_is_nothing_to_know() -> None:
    devices = Devices({})
    assert devices.shares_of("calls", CALLS) == [None]
    assert (devices.held_bytes, devices.fill) == (0, 0.0)
