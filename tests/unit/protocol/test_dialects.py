from __future__ import annotations

import tracemalloc

import pytest

from duologue.protocol.dialect import HEADS_KEPT, Dialect
from duologue.protocol.dialects import DIALECTS
from duologue.protocol.events import AudioCleared
from duologue.protocol.response_events import AudioDelta, FormattedAudioDelta

DELTA = AudioDelta(response_id="r", item_id="i", output_index=0, content_index=0, delta=b"\0\1")


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=map(str, DIALECTS))
def test_each_writes_what_every_client_knows(dialect: Dialect) -> None:
    assert dialect.encode_event(AudioCleared(), 1)
    assert dialect.encode_event(DELTA, 2)


def say(dialect: Dialect, answers: range) -> None:
    """One piece of sound of each of many answers."""
    for number in answers:
        ids = {"response_id": f"resp_{number:020}", "item_id": f"item_{number:020}"}
        plain = AudioDelta(output_index=0, content_index=0, delta=b"\0\1", **ids)
        duplex = FormattedAudioDelta(
            output_index=0,
            content_index=0,
            delta=b"\0\1",
            format="pcm16",
            sample_rate_hz=24_000,
            **ids,
        )
        dialect.encode_event(duplex if dialect.family == "duplex" else plain, number)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=map(str, DIALECTS))
def test_answers_that_are_over_leave_nothing_behind(dialect: Dialect) -> None:
    say(dialect, range(HEADS_KEPT))
    tracemalloc.start()
    try:
        say(dialect, range(HEADS_KEPT, 2 * HEADS_KEPT))
        before = tracemalloc.get_traced_memory()[0]
        say(dialect, range(2 * HEADS_KEPT, 3 * HEADS_KEPT))
        assert tracemalloc.get_traced_memory()[0] - before < 10_000
    finally:
        tracemalloc.stop()


def test_each_knows_its_family_and_no_two_are_the_same() -> None:
    assert [dialect.family for dialect in DIALECTS.values()] == [family for family, _ in DIALECTS]
    assert len(set(map(id, DIALECTS.values()))) == len(DIALECTS)
