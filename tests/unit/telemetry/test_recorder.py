from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.telemetry import Direction, Entry, FlightRecorder, Kinds


class Append: ...


class Delta: ...


class Stranger: ...


KINDS = Kinds(inputs=[Append], effects=[Delta])


def test_an_entry_holds_time_direction_type_size_position_and_epoch() -> None:
    recorder = FlightRecorder(KINDS, capacity=8, now=100.0)
    recorder.record(Append, 100.5, size_bytes=1920, sample=960)
    recorder.record(Delta, 101.0, size_bytes=640, sample=48_000, epoch=2)
    assert recorder.entries() == [
        Entry(0.5, Direction.INPUT, "Append", 1920, 960, 0),
        Entry(1.0, Direction.EFFECT, "Delta", 640, 48_000, 2),
    ]


@given(st.integers(1, 200), st.integers(0, 700))
def test_the_newest_entries_stay_in_order(capacity: int, recorded: int) -> None:
    recorder = FlightRecorder(KINDS, capacity=capacity, now=0.0)
    for number in range(recorded):
        recorder.record(Append, float(number), sample=number)
    kept = [entry.sample for entry in recorder.entries()]
    assert kept == list(range(recorded))[-capacity:]


def test_memory_grows_with_use_and_stops_at_the_capacity() -> None:
    recorder = FlightRecorder(KINDS, capacity=1024, now=0.0)
    sizes = set()
    for number in range(3000):
        recorder.record(Append, float(number))
        sizes.add(len(recorder._ring))
    assert min(sizes) <= 1024
    assert max(sizes) == 1024 * 16


def test_the_last_seconds_can_be_asked_for() -> None:
    recorder = FlightRecorder(KINDS, capacity=100, now=0.0)
    for second in range(60):
        recorder.record(Append, float(second))
    assert [entry.at_s for entry in recorder.entries(last_s=2.0)] == [57.0, 58.0, 59.0]
    assert FlightRecorder(KINDS, capacity=1, now=0.0).entries(last_s=2.0) == []


def test_values_beyond_the_record_neither_fail_nor_disturb_others() -> None:
    recorder = FlightRecorder(KINDS, capacity=4, now=0.0)
    recorder.record(Append, 1.0, size_bytes=2**40 + 7, sample=2**33 + 5, epoch=2**17 + 3)
    recorder.record(Append, 2.0, sample=-1)
    first, second = recorder.entries()
    assert (first.size_bytes, first.sample, first.epoch) == (7, 5, 3)
    assert second.at_s == 2.0


def test_an_unknown_type_is_recorded_as_unlisted() -> None:
    recorder = FlightRecorder(KINDS, capacity=4, now=0.0)
    recorder.record(Stranger, 1.0, size_bytes=3)
    assert recorder.entries() == [Entry(1.0, Direction.INPUT, "unlisted", 3)]


def test_a_type_cannot_be_input_and_effect() -> None:
    with pytest.raises(ValueError, match="Append is given twice"):
        Kinds(inputs=[Append], effects=[Append])


def test_a_recorder_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="0 entries"):
        FlightRecorder(KINDS, capacity=0, now=0.0)
