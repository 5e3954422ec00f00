"""Which audio files are written and read, and how large one may be.

This module must not know how.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class OutputFormat(StrEnum):
    """What speech can be written as; the names of the speech API."""

    MP3 = "mp3"
    OPUS = "opus"
    AAC = "aac"
    FLAC = "flac"
    WAV = "wav"
    PCM = "pcm"


CONTENT_TYPES: Mapping[OutputFormat, str] = MappingProxyType(
    {
        OutputFormat.MP3: "audio/mpeg",
        OutputFormat.OPUS: "audio/opus",
        OutputFormat.AAC: "audio/aac",
        OutputFormat.FLAC: "audio/flac",
        OutputFormat.WAV: "audio/wav",
        OutputFormat.PCM: "audio/pcm",
    }
)

ACCEPTED_FORMATS = ("aac", "flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm")
"""What can be read, as people name files. The content decides, not the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """How large a file may be.

    Args:
        max_bytes: Of the file.
        max_s: Of the audio in it.
        max_channels: They are mixed into one.
        stall_s: A file whose next piece takes longer to decode is refused.
    """

    max_bytes: int = 25 * 1024 * 1024
    max_s: float = 7200.0
    max_channels: int = 8
    stall_s: float = 10.0
