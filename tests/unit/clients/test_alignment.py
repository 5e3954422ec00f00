from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duologue.clients.alignment import Alignment

RATE_HZ = 24_000


def spoken(*parts: tuple[str, float]) -> Alignment:
    """Text that comes right before its speech."""
    alignment = Alignment(RATE_HZ)
    for text, seconds in parts:
        alignment.add_text(text)
        alignment.add_audio(int(seconds * RATE_HZ))
    alignment.complete()
    return alignment


def heard(alignment: Alignment, seconds: float) -> str:
    return alignment.text[: alignment.heard_characters(int(seconds * RATE_HZ))]


def test_at_a_border_of_clauses_the_clauses_before_it_were_heard() -> None:
    alignment = spoken(("Hello there, ", 1.0), ("how are you?", 1.0))
    assert heard(alignment, 1.0).strip() == "Hello there,"
    assert heard(alignment, 2.0) == "Hello there, how are you?"
    assert heard(alignment, 0.0) == ""


def test_between_borders_a_word_counts_from_its_middle() -> None:
    alignment = spoken(("one two three four", 2.0))
    assert heard(alignment, 0.1) == ""
    assert heard(alignment, 0.3) == "one"
    assert heard(alignment, 1.1) == "one two"
    assert heard(alignment, 1.2) == "one two three"


def test_all_text_first_flows_evenly_over_the_speech() -> None:
    alignment = Alignment(RATE_HZ)
    for word in ["a", "few", "words", "that", "come", "long", "before", "they", "are", "spoken"]:
        alignment.add_text(f"{word} ")
    alignment.add_audio(3 * RATE_HZ)
    alignment.complete()
    assert heard(alignment, 1.5) == "a few words that come long"


def test_all_speech_first_is_spread_over_the_text_that_follows() -> None:
    alignment = Alignment(RATE_HZ)
    alignment.add_audio(3 * RATE_HZ)
    alignment.add_text("words that come long after they were spoken")
    alignment.complete()
    assert heard(alignment, 3.0) == alignment.text
    assert heard(alignment, 1.5).startswith("words that")
    assert len(heard(alignment, 1.5)) < len(alignment.text)


@given(
    st.lists(st.tuples(st.text("ab ", max_size=12), st.integers(0, 60_000)), max_size=8),
    st.lists(st.integers(0, 400_000), min_size=2, max_size=6),
    st.booleans(),
)
def test_who_hears_longer_never_hears_less(
    parts: list[tuple[str, int]], moments: list[int], complete: bool
) -> None:
    alignment = Alignment(RATE_HZ)
    for text, samples in parts:
        alignment.add_text(text)
        alignment.add_audio(samples)
    if complete:
        alignment.complete()
    counts = [alignment.heard_characters(moment) for moment in sorted(moments)]
    assert counts == sorted(counts)
    assert all(0 <= count <= len(alignment.text) for count in counts)
