"""The seats of one device in memory that its workers share, so that all of them are one arbiter.

Whoever asks takes the lock, reads the seats, lets the arbiter decide and writes them back: what
decides is one thing, wherever it is computed. The lock is one of the kernel's, which lets go of it
with the process. Realtime workers take no lock and wait for nobody: each writes its own beat. This
module must not know runners, nor what batch work is.
"""

from __future__ import annotations

import fcntl
import math
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from duologue.engines.arbiter.device_arbiter import IDLE, Beat, DeviceArbiter, Seat
from duologue.engines.transport.memory_file import MemoryFile

_HEAD = struct.Struct("<dqq")  # period, budget, seats
_STATE = struct.Struct("<q")
_BEAT = struct.Struct("<qdddd")  # number of the write, due, deadline, step, busy until
_REST = struct.Struct("<ddddddqqdd")

_HEAD_BYTES = 64
_SEAT_BYTES = 192
_BEAT_AT, _REST_AT = 8, 64

_GONE, _REALTIME, _BATCH_WORK = 0, 1, 2
_TRIES = 16
_UNREADABLE = Beat(due=0.0, deadline=0.0, step_s=0.0, busy_until=math.inf)
"""What is taken for a beat that is being written each time one looks: nothing may run."""


class Board:
    """One end of a board.

    Args:
        memory: Made by ``Board.make``, here or in another process. A lock belongs to an open file,
            so each thread that asks needs a board of its own, see ``opened_again``.
    """

    def __init__(self, memory: MemoryFile) -> None:
        self._memory = memory
        self._bytes = memory.map(0, memory.size_bytes, writable=True)
        self.period_s, self.budget_bytes, self.seats = _HEAD.unpack_from(self._bytes)

    @classmethod
    def make(cls, name: str, seats: int, period_s: float, budget_bytes: int) -> Board:
        """Make one, with nobody at it.

        Args:
            name: Of the device, for people who look into ``/proc``.

        Raises:
            OSError: The system gives no memory.
        """
        memory = MemoryFile.create(f"duologue-{name}")
        memory.grow(_HEAD_BYTES + seats * _SEAT_BYTES)
        with memory.map(0, memory.size_bytes, writable=True) as part:
            _HEAD.pack_into(part, 0, period_s, budget_bytes, seats)
        return cls(memory)

    @classmethod
    def opened_again(cls, fd: int) -> Board:
        """Return another end of the board behind a descriptor, with a lock of its own."""
        return cls(MemoryFile(os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)))

    @property
    def fd(self) -> int:
        """Of its memory."""
        return self._memory.fd

    def close(self) -> None:
        """Let go of it."""
        self._bytes.close()
        self._memory.close()

    # A worker's own seat

    def sit(self, number: int, *, is_batch: bool) -> None:
        """Take a seat, which is as new."""
        with self._locked():
            self.leave(number)
            self._write_seat(number, Seat(is_batch=is_batch))
            self.publish(number, IDLE)
            self._set_state(number, _BATCH_WORK if is_batch else _REALTIME)

    def leave(self, number: int) -> None:
        """The worker is gone, and holds nothing any more. Takes no lock, so anybody may say so."""
        self._set_state(number, _GONE)

    def publish(self, number: int, beat: Beat) -> None:
        """Say when the next step is. Takes no lock: readers see by its number if it changed."""
        place = self._place(number) + _BEAT_AT
        (count,) = _STATE.unpack_from(self._bytes, place)
        _STATE.pack_into(self._bytes, place, count | 1)
        _BEAT.pack_into(
            self._bytes, place, count | 1, beat.due, beat.deadline, beat.step_s, beat.busy_until
        )
        _STATE.pack_into(self._bytes, place, (count | 1) + 1)

    # All seats

    @contextmanager
    def deciding(self) -> Iterator[DeviceArbiter]:
        """Hold the lock, and the arbiter of all seats as they are; what it changes is kept."""
        with self._locked():
            arbiter = self.look()
            yield arbiter
            for number, seat in arbiter.seats.items():
                self._write_seat(number, seat)

    def look(self) -> DeviceArbiter:
        """Return the arbiter of all seats as they are, to look at."""
        seats = {}
        for number in range(self.seats):
            (state,) = _STATE.unpack_from(self._bytes, self._place(number))
            if state != _GONE:
                seats[number] = self._read_seat(number, is_batch=state == _BATCH_WORK)
        return DeviceArbiter(self.period_s, self.budget_bytes, seats)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.flock(self.fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self.fd, fcntl.LOCK_UN)

    def _read_seat(self, number: int, *, is_batch: bool) -> Seat:
        values = _REST.unpack_from(self._bytes, self._place(number) + _REST_AT)
        beat = IDLE if is_batch else self._read_beat(number)
        return Seat(is_batch, beat, *values)

    def _read_beat(self, number: int) -> Beat:
        place = self._place(number) + _BEAT_AT
        for _ in range(_TRIES):
            before, due, deadline, step_s, busy_until = _BEAT.unpack_from(self._bytes, place)
            (after,) = _STATE.unpack_from(self._bytes, place)
            if before == after and not before % 2:
                return Beat(due, deadline, step_s, busy_until)
        return _UNREADABLE

    def _write_seat(self, number: int, seat: Seat) -> None:
        _REST.pack_into(
            self._bytes,
            self._place(number) + _REST_AT,
            seat.used_s,
            seat.waits_since,
            seat.again_at,
            seat.cost_s,
            seat.began_at,
            seat.runs_until,
            seat.resident_bytes,
            seat.transient_bytes,
            seat.wants_since,
            seat.wanted_at,
        )

    def _set_state(self, number: int, state: int) -> None:
        _STATE.pack_into(self._bytes, self._place(number), state)

    @staticmethod
    def _place(number: int) -> int:
        return _HEAD_BYTES + number * _SEAT_BYTES
