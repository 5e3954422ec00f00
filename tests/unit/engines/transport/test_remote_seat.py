from __future__ import annotations

import os

import msgspec
import pytest

from duologue.core.clock import SystemClock
from duologue.core.errors import EngineError
from duologue.engines.transport.remote_seat import RemoteSeat, inherit_seat, pass_seat

SEAT = RemoteSeat("zeromq", "127.0.0.1", b"a secret of 20 bytes", "tts/0", 2**20, 1 << 32)


def test_a_seat_goes_through_a_pipe() -> None:
    with pass_seat(SEAT) as pipe:
        assert inherit_seat(os.dup(pipe.fileno())) == SEAT


def test_its_store_is_found_by_its_readers() -> None:
    store = SEAT.open_store()
    reader = SEAT.open_reader(SystemClock())
    handle = store.put(b"a payload")
    assert handle is not None
    assert handle.place.startswith("tcp://127.0.0.1:")
    assert handle.generation == 1 << 32
    assert reader.get(handle, SystemClock().now() + 15) == b"a payload"
    reader.close()
    store.close()


def test_an_address_of_another_machine_is_none_to_be_found_at() -> None:
    with pytest.raises(EngineError, match=r"192\.0\.2\.1"):
        msgspec.structs.replace(SEAT, host="192.0.2.1").open_store()
