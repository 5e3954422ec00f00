"""The flight recorder: what happened in the last seconds of a session, without what was said.

Each input and effect leaves its time, type, size, position and epoch in a ring of fixed-size
records. A session that fails hands out its ring, to be written, read back and replayed. This
module must not know the types that it records, nor when a session fails.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

_RECORD = struct.Struct("<fIIHH")
"""Time, size, position, epoch, kind. 16 bytes an entry keep 30 s of a call in 16 KB."""

_RECORD_BYTES = _RECORD.size
_pack_into = _RECORD.pack_into
_MAX_32 = 0xFFFF_FFFF
_MAX_16 = 0xFFFF
_FIRST_ENTRIES = 32
_UNLISTED = "unlisted"


class Direction(Enum):
    """Which way something crossed the session's border."""

    INPUT = "in"
    EFFECT = "out"


@dataclass(frozen=True, slots=True)
class Entry:
    """One input or effect.

    Args:
        at_s: Seconds since the recorder started; exact to 0.25 ms in the first hour.
        kind: Name of its type.
        sample: Its place on the sample clock of its direction, where it has one.
    """

    at_s: float
    direction: Direction
    kind: str
    size_bytes: int = 0
    sample: int = 0
    epoch: int = 0


class Kinds:
    """The types that can be recorded, numbered; one for all recorders of a process.

    A type that is in neither union is recorded as an ``unlisted`` input.

    Raises:
        ValueError: A type is both, so that its direction could not be told.
    """

    def __init__(self, *, inputs: Iterable[type], effects: Iterable[type]) -> None:
        self._kinds = [(Direction.INPUT, _UNLISTED)]
        self.numbers = _Numbers()
        for direction, types in ((Direction.INPUT, inputs), (Direction.EFFECT, effects)):
            for kind in types:
                if kind in self.numbers:
                    raise ValueError(f"{kind.__name__} is given twice")
                self.numbers[kind] = len(self._kinds)
                self._kinds.append((direction, kind.__name__))

    def kind(self, number: int) -> tuple[Direction, str]:
        """Return the direction and the name of the type with a number."""
        return self._kinds[number]


class _Numbers(dict[type, int]):
    """Looked up once for each entry; what is missing is number 0."""

    def __missing__(self, kind: type) -> int:
        return 0


class FlightRecorder:
    """The last entries of one session; the oldest give way.

    Args:
        kinds: Shared by all recorders.
        capacity: Entries kept, at least 1. Memory grows with use, up to 16 bytes for each.
        now: Time zero of this recorder.

    Concurrency:
        Belongs to the session's loop.
    """

    __slots__ = (
        "_capacity_bytes",
        "_kinds",
        "_numbers",
        "_offset",
        "_ring",
        "_started",
        "_wrapped",
    )

    def __init__(self, kinds: Kinds, *, capacity: int, now: float) -> None:
        if capacity < 1:
            raise ValueError(f"a recorder of {capacity} entries records nothing; make none instead")
        self._kinds = kinds
        self._numbers = kinds.numbers
        self._capacity_bytes = capacity * _RECORD_BYTES
        self._started = now
        self._ring = bytearray(min(capacity, _FIRST_ENTRIES) * _RECORD_BYTES)
        self._offset = 0
        self._wrapped = False

    def record(
        self, kind: type, now: float, size_bytes: int = 0, sample: int = 0, epoch: int = 0
    ) -> None:
        """Note one input or effect. Costs half a microsecond and never fails."""
        offset = self._offset
        _pack_into(
            self._ring,
            offset,
            now - self._started,
            size_bytes & _MAX_32,
            sample & _MAX_32,
            epoch & _MAX_16,
            self._numbers[kind],
        )
        offset += _RECORD_BYTES
        self._offset = offset if offset < len(self._ring) else self._turn(offset)

    def entries(self, last_s: float | None = None) -> list[Entry]:
        """All entries, oldest first; with ``last_s`` those of the last seconds before the end."""
        records = self._ring[: self._offset]
        if self._wrapped:
            records = self._ring[self._offset :] + records
        entries = [self._entry(*fields) for fields in _RECORD.iter_unpack(records)]
        if last_s is not None and entries:
            since_s = entries[-1].at_s - last_s
            entries = [entry for entry in entries if entry.at_s >= since_s]
        return entries

    def _turn(self, offset: int) -> int:
        """At the end of the ring: make it longer while it may grow, else start over."""
        room = self._capacity_bytes - len(self._ring)
        if room > 0:
            self._ring += bytes(min(room, len(self._ring)))
            return offset
        self._wrapped = True
        return 0

    def _entry(self, at_s: float, size_bytes: int, sample: int, epoch: int, number: int) -> Entry:
        direction, name = self._kinds.kind(number)
        return Entry(at_s, direction, name, size_bytes, sample, epoch)
