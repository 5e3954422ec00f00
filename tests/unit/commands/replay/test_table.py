"""A recorded call as tables."""

from __future__ import annotations

from duologue.commands.replay.story import story_of
from duologue.commands.replay.table import (
    ANSWER_COLUMNS,
    aligned,
    answer_rows,
    interruption_lines,
    rerun_lines,
    ring_lines,
    summary,
)
from duologue.sessions.recording.rerun import Difference, Rerun
from duologue.telemetry import Direction, Entry, Flight
from tests.fakes.taped_call import MemoryTape, interrupted_call


def test_a_call_in_some_lines() -> None:
    memory = MemoryTape(content=False)
    interrupted_call(memory)
    story = story_of(memory.recording())
    assert "2 turns, 2 answers, 1 interruption, 0 faults; ended: client_gone" in summary(story)
    (line,) = interruption_lines(story)
    assert "0.640 s heard" in line
    assert "by the turn at" in line
    rows = answer_rows(story)
    assert rows[0][ANSWER_COLUMNS.index("heard")] == "0.64"
    assert rows[0][ANSWER_COLUMNS.index("made")] == "6.00"
    assert len({len(line) for line in aligned(ANSWER_COLUMNS, rows)}) == 1


def test_doing_it_again_is_told_in_plain_words() -> None:
    assert rerun_lines(Rerun(5, (), 0), content=True) == ["done again: 5 steps, none differs"]
    difference = Difference(3, 1.5, "apply", "nothing", "SubmitRequest()")
    lines = rerun_lines(Rerun(5, (difference,), 1), content=False)
    assert lines[0].startswith("done again: 1 of 5 steps differ")
    assert "step 3 at 1.500 s, apply: recorded nothing; now SubmitRequest()" in lines[1]
    assert "no content" in lines[2]


def test_a_ring_says_what_it_holds_and_what_it_does_not() -> None:
    entries = (
        Entry(1.0, Direction.INPUT, "AppendAudio", 960),
        Entry(2.0, Direction.EFFECT, "ResponseDone"),
    )
    lines = ring_lines(Flight("sess", "ValueError", 0.0, entries))
    assert lines[0] == "sess: the last 1.0 s before ValueError, 2 entries"
    assert "in: 1 AppendAudio" in lines
    assert "cannot be done again" in lines[-1]
    assert ring_lines(Flight("sess", "ValueError", 0.0, ()))[0].endswith("0 entries")
