from __future__ import annotations

from duologue.gateway.transcription.segments import segments_of
from duologue.gateway.transcription.subtitles import as_srt, as_vtt
from tests.unit.gateway.transcription.test_segments import window

SEGMENTS = segments_of([window("Hello there. How are you?", 3599.5)], 0)


def test_subrip() -> None:
    assert as_srt(SEGMENTS) == (
        "1\n00:59:59,500 --> 01:00:00,500\nHello there.\n\n"
        "2\n01:00:00,500 --> 01:00:02,000\nHow are you?\n\n"
    )


def test_webvtt() -> None:
    assert as_vtt(SEGMENTS) == (
        "WEBVTT\n\n00:59:59.500 --> 01:00:00.500\nHello there.\n\n"
        "01:00:00.500 --> 01:00:02.000\nHow are you?\n\n"
    )


def test_nothing_in_a_text_is_taken_for_markup() -> None:
    assert "a --&gt; b &lt;i&gt; &amp;" in as_vtt(segments_of([window("a --> b <i> &")], 0))


def test_no_segments_are_an_empty_file() -> None:
    assert as_srt([]) == ""
    assert as_vtt([]) == "WEBVTT\n\n"
