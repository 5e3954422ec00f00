"""What a soak calls growth, and what it hears."""

from __future__ import annotations

from array import array

import pytest

from duologue.engines.payloads import AudioChunk, SpeakText
from duologue.engines.runners.contract import Job
from tests.faults.scripted_models import FaultySettings
from tests.soak.callers import possible_questions
from tests.soak.counting_voice import WRAP, Count, CountingVoice, tag_of
from tests.soak.readings import Drift, Reading, complaints, parse

PAGE = """# HELP process_open_fds Number of open file descriptors.
process_open_fds 24.0
process_resident_memory_bytes 1.3e+08
duologue_loop_tasks 10.0
duologue_sessions_active 0.0
duologue_sessions_detached 0.0
duologue_held_bytes{bound="journal"} 100.0
duologue_held_bytes{bound="output_buffer"} 28.0
duologue_bound_fill_ratio{bound="stage_slots"} 0.5
"""


def reading(memory_mb: float = 130, files: float = 24, tasks: float = 10) -> Reading:
    return Reading(0, memory_mb * 1e6, files, tasks, 0, 0, 0, 0)


def test_figures_are_read_as_they_are_published() -> None:
    seen = Reading.of(parse(PAGE), 5.0)
    assert seen == Reading(5.0, 1.3e8, 24, 10, 0, 0, 128, 0.5)
    assert not seen.is_quiet
    assert reading().is_quiet


def test_what_stays_the_same_is_no_complaint_and_what_wavers_is_none() -> None:
    assert complaints([reading(130 + n % 3, files=24 + n % 2) for n in range(9)]) == []
    # The allocator's share comes early, and then no more.
    assert complaints([reading(130 + 3 * (n > 2)) for n in range(9)]) == []


@pytest.mark.parametrize(
    ("growing", "what"),
    [
        ([reading(130 + 3 * n) for n in range(9)], "memory grew: 133.0, 142.0, 151.0 MB"),
        ([reading(130 + 2.5 * (n > 5)) for n in range(9)], "memory grew: 130.0, 130.0, 132.5 MB"),
        ([reading(files=24 + n) for n in range(9)], "files grew from"),
        ([reading(tasks=10 + n // 3) for n in range(9)], "tasks grew from"),
        ([reading()], "too few"),
    ],
)
def test_what_grows_is_named(growing: list[Reading], what: str) -> None:
    (complaint,) = complaints(growing)
    assert what in complaint


def test_drift_is_what_the_pace_loses_and_no_chance_delay() -> None:
    steady, slow = Drift(1.0), Drift(1.0)
    for n in range(90):
        at = max(0.0, 0.2 * n - 3.0)
        steady.note(at + (0.3 if n % 7 == 0 else 0.0), 0.2 * n)
        slow.note(at * 1.01, 0.2 * n)
    assert steady.seconds() < 0.001
    assert slow.seconds() > 0.05


def test_a_machine_that_stands_still_makes_a_gap_and_no_drift() -> None:
    drift = Drift(1.0)
    for n in range(90):
        stood_still = 1.3 if n > 50 else 0.0
        drift.note(max(0.0, 0.2 * n - 3.0) + stood_still, 0.2 * n)
    assert drift.gaps == 1
    assert drift.seconds() < 0.001


def spoken(*texts: str) -> bytes:
    """Let the voice say some clauses of one answer."""
    voice = CountingVoice(FaultySettings(stage="tts", desk="", absent="/nowhere"))
    job = Job("answer")
    voice.open(job)
    pcm = b""
    for text in texts:
        job.inputs.append(SpeakText(text, len(text)))
        while voice.ready(job):
            (step,) = voice.step((job,))
            pcm += b"".join(each.pcm for each in step.outputs if isinstance(each, AudioChunk))
    return pcm


CLAUSES = ("Well,", "you said hello", "again.", "and so on" * 20)


def test_the_voice_counts_on_from_clause_to_clause_and_names_its_caller() -> None:
    pcm = spoken(*CLAUSES)
    samples = array("h", pcm)
    assert list(samples[::2]) == [n % WRAP for n in range(len(samples) // 2)]
    assert set(samples[1::2]) == {0, tag_of("hello again")}


def test_in_any_pieces_an_answer_is_read_to_its_end() -> None:
    pcm, count = spoken(*CLAUSES), Count("hello again")
    for start in range(0, len(pcm), 997):
        count.read(pcm[start : start + 997])
    assert count.pairs == len(pcm) // 4


@pytest.mark.parametrize("fault", ["lost", "doubled", "of another"])
def test_a_sample_that_is_wrong_is_heard(fault: str) -> None:
    pcm = spoken(*CLAUSES)
    count = Count("hello again" if fault != "of another" else "again hello")
    wrong = {
        "lost": pcm[:4000] + pcm[4004:],
        "doubled": pcm[:4004] + pcm[4000:],
        "of another": pcm,
    }[fault]
    with pytest.raises(AssertionError, match="samples"):
        count.read(wrong)


def test_an_answer_is_to_the_last_turn_and_to_any_before_that_got_none() -> None:
    assert set(possible_questions(["a", "b", "c"])) == {"c", "a c", "b c", "a b c"}
    assert list(possible_questions(["a"])) == ["a"]
