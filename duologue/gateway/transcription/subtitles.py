"""Segments as subtitle files: SubRip and WebVTT.

This module must not know where segments come from.

Source:
    W3C WebVTT; SubRip has no standard, and this is what players agree on.
"""

from __future__ import annotations

from collections.abc import Iterable

from duologue.gateway.transcription.segments import Segment


def as_srt(segments: Iterable[Segment]) -> str:
    """Return a SubRip file."""
    return "".join(
        f"{number}\n{_clock(each.start, ',')} --> {_clock(each.end, ',')}\n{each.text.strip()}\n\n"
        for number, each in enumerate(segments, 1)
    )


def as_vtt(segments: Iterable[Segment]) -> str:
    """Return a WebVTT file."""
    cues = "".join(
        f"{_clock(each.start, '.')} --> {_clock(each.end, '.')}\n{_cue_text(each.text)}\n\n"
        for each in segments
    )
    return f"WEBVTT\n\n{cues}"


def _cue_text(text: str) -> str:
    # An arrow would begin another cue, and the others markup.
    return text.strip().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _clock(seconds: float, point: str) -> str:
    whole_ms = round(seconds * 1000)
    whole_s, ms = divmod(whole_ms, 1000)
    minutes, s = divmod(whole_s, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{s:02}{point}{ms:03}"
