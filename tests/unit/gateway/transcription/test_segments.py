from __future__ import annotations

from duologue.engines.payloads import HeardDetails, HeardWord
from duologue.gateway.transcription.hearing import HeardWindow
from duologue.gateway.transcription.segments import SpokenWord, segments_of, spoken_words
from duologue.gateway.transcription.windows import WINDOW_RATE_HZ


def window(text: str, start_s: float = 0.0, step_s: float = 0.5) -> HeardWindow:
    """Half a second for each word, without gaps."""
    words = tuple(
        HeardWord(
            f" {word}",
            round((start_s + n * step_s) * WINDOW_RATE_HZ),
            round((start_s + (n + 1) * step_s) * WINDOW_RATE_HZ),
            0.9,
            (n, n + 100),
        )
        for n, word in enumerate(text.split())
    )
    end = words[-1].end_sample if words else 0
    details = HeardDetails(words, -0.25, 0.03)
    return HeardWindow(text, round(start_s * WINDOW_RATE_HZ), end, details)


def test_a_sentence_is_a_segment() -> None:
    first, second = segments_of([window("Hello there. How are you?", 2.0)], 0.2)

    assert (first.text, first.start, first.end) == (" Hello there.", 2.0, 3.0)
    assert (second.text, second.start, second.end) == (" How are you?", 3.0, 4.5)
    assert (first.id, second.id) == (0, 1)
    assert first.seek == second.seek == 200
    assert first.tokens == [0, 100, 1, 101]
    assert (first.temperature, first.avg_logprob, first.no_speech_prob) == (0.2, -0.25, 0.03)
    assert 0 < first.compression_ratio < 2


def test_a_long_sentence_is_cut_at_what_a_subtitle_holds() -> None:
    by_time = segments_of([window("word " * 30, step_s=1.0)], 0)
    by_length = segments_of([window("wonderfulness " * 20, step_s=0.1)], 0)

    assert all(segment.end - segment.start <= 7 for segment in by_time)
    assert all(len(segment.text) <= 84 for segment in by_length)
    assert len(by_length) > 2


def test_a_pause_ends_a_segment() -> None:
    before, after = window("and then"), window("came the rain", 4.0)
    together = HeardWindow(
        "and then came the rain",
        0,
        after.end_sample,
        HeardDetails(before.words + after.words),
    )

    assert [segment.text for segment in segments_of([together], 0)] == [
        " and then",
        " came the rain",
    ]


def test_a_window_whose_words_are_not_known_is_one_segment() -> None:
    segments = segments_of(
        [HeardWindow("One. Two.", WINDOW_RATE_HZ, 3 * WINDOW_RATE_HZ), window("Three.", 3.0)], 0
    )

    assert [(each.text, each.start, each.end) for each in segments] == [
        (" One. Two.", 1.0, 3.0),
        (" Three.", 3.0, 3.5),
    ]


def test_all_words_are_in_some_segment() -> None:
    windows = [window("One two. Three"), window("four five, six!", 5.0)]

    segments = segments_of(windows, 0)

    joined = "".join(segment.text for segment in segments).split()
    assert joined == [word.word for word in spoken_words(windows)]


def test_words_have_times_in_seconds() -> None:
    assert spoken_words([window("Hello there.", 1.0)]) == [
        SpokenWord("Hello", 1.0, 1.5),
        SpokenWord("there.", 1.5, 2.0),
    ]
