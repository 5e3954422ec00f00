from __future__ import annotations

from duologue.codecs.containers.formats import ACCEPTED_FORMATS, CONTENT_TYPES, OutputFormat


def test_every_format_that_is_written_has_a_content_type() -> None:
    assert CONTENT_TYPES.keys() == set(OutputFormat)


def test_what_is_accepted_is_at_least_what_the_api_names() -> None:
    named = {"flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "wav", "webm"}
    assert named <= set(ACCEPTED_FORMATS)
