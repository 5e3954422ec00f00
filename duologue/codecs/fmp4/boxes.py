"""The boxes of a fragmented MP4 (ISO/IEC 14496-12), as bytes.

libavformat's muxer holds every fragment back until the next picture comes; with two tracks and a
fragment for each picture it writes wrong times, so that browsers show key pictures alone; hence our
own. This module must not know codecs' libraries.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

MOVIE_TIMESCALE = 1000
_UNITY = struct.pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
_UNDETERMINED_LANGUAGE = 0x55C4
_SYNC_SAMPLE = 0x02000000
_OTHER_SAMPLE = 0x01010000
_DURATION_SIZE_FLAGS_AND_OFFSET = 0x000701
_OFFSETS_FROM_MOOF = 0x020000
_HIGH_PROFILES = (100, 110, 122, 144)


@dataclass(frozen=True, slots=True)
class VideoTrack:
    """A track of H.264 pictures.

    Args:
        sps, pps: The parameter sets, without start codes.
        timescale: Units a second of its times.
    """

    id: int
    width: int
    height: int
    timescale: int
    sps: bytes
    pps: bytes

    @property
    def codec(self) -> str:
        """As a MIME type names it (RFC 6381). Profile and level change with size and preset."""
        return "avc1.{:02X}{:02X}{:02X}".format(*self.sps[1:4])


@dataclass(frozen=True, slots=True)
class AudioTrack:
    """A track of AAC.

    Args:
        config: The AudioSpecificConfig.
        priming: Samples at the beginning that are not to be heard: what the encoder needs to warm
            up. An edit list says so, and the sound begins with the pictures.
    """

    id: int
    rate_hz: int
    channels: int
    config: bytes
    priming: int

    @property
    def timescale(self) -> int:
        """Units a second of its times."""
        return self.rate_hz

    codec = "mp4a.40.2"


Track = VideoTrack | AudioTrack


@dataclass(frozen=True, slots=True)
class Sample:
    """One encoded picture, or frame of sound.

    Args:
        duration: In its track's timescale.
    """

    data: bytes
    duration: int
    is_sync: bool


@dataclass(frozen=True, slots=True)
class Run:
    """Samples of one track that follow each other; ``start`` is the time of the first."""

    track_id: int
    start: int
    samples: Sequence[Sample]


def box(kind: bytes, *parts: bytes) -> bytes:
    """Return a box."""
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def full_box(kind: bytes, version: int, flags: int, *parts: bytes) -> bytes:
    """Return a box with a version and flags."""
    return box(kind, struct.pack(">I", version << 24 | flags), *parts)


def header(tracks: Sequence[Track]) -> bytes:
    """Return ``ftyp`` and ``moov``: all that a player needs before the first fragment."""
    kinds = box(b"ftyp", b"iso5", struct.pack(">I", 512), b"iso5iso6mp41")
    movie = full_box(
        b"mvhd",
        0,
        0,
        struct.pack(">IIII", 0, 0, MOVIE_TIMESCALE, 0),
        struct.pack(">IH", 0x10000, 0x100),
        bytes(10),
        _UNITY,
        bytes(24),
        struct.pack(">I", 1 + max(track.id for track in tracks)),
    )
    extends = [full_box(b"trex", 0, 0, struct.pack(">5I", each.id, 1, 0, 0, 0)) for each in tracks]
    return kinds + box(b"moov", movie, *map(_track, tracks), box(b"mvex", *extends))


def fragment(sequence: int, runs: Sequence[Run]) -> bytes:
    """Return ``moof`` and ``mdat``.

    Args:
        sequence: Numbers fragments from 1.
        runs: One for each track that has something.
    """
    before = len(_moof(sequence, runs, [0] * len(runs))) + 8
    offsets = []
    for run in runs:
        offsets.append(before)
        before += sum(len(sample.data) for sample in run.samples)
    data = [sample.data for run in runs for sample in run.samples]
    return _moof(sequence, runs, offsets) + box(b"mdat", *data)


def _moof(sequence: int, runs: Sequence[Run], offsets: Sequence[int]) -> bytes:
    parts = [_run(each, offset) for each, offset in zip(runs, offsets, strict=True) if each.samples]
    return box(b"moof", full_box(b"mfhd", 0, 0, struct.pack(">I", sequence)), *parts)


def _run(run: Run, offset: int) -> bytes:
    table = b"".join(
        struct.pack(
            ">III",
            each.duration,
            len(each.data),
            _SYNC_SAMPLE if each.is_sync else _OTHER_SAMPLE,
        )
        for each in run.samples
    )
    return box(
        b"traf",
        full_box(b"tfhd", 0, _OFFSETS_FROM_MOOF, struct.pack(">I", run.track_id)),
        full_box(b"tfdt", 1, 0, struct.pack(">Q", run.start)),
        full_box(
            b"trun",
            0,
            _DURATION_SIZE_FLAGS_AND_OFFSET,
            struct.pack(">Ii", len(run.samples), offset),
            table,
        ),
    )


def _track(track: Track) -> bytes:
    is_video = isinstance(track, VideoTrack)
    size = (track.width << 16, track.height << 16) if isinstance(track, VideoTrack) else (0, 0)
    head = full_box(
        b"tkhd",
        0,
        3,
        struct.pack(">5I", 0, 0, track.id, 0, 0),
        bytes(8),
        struct.pack(">HHHH", 0, 0, 0 if is_video else 0x100, 0),
        _UNITY,
        struct.pack(">II", *size),
    )
    media = full_box(
        b"mdhd",
        0,
        0,
        struct.pack(">IIIIHH", 0, 0, track.timescale, 0, _UNDETERMINED_LANGUAGE, 0),
    )
    handler = full_box(
        b"hdlr", 0, 0, bytes(4), b"vide" if is_video else b"soun", bytes(12), b"media\0"
    )
    kind = full_box(b"vmhd", 0, 1, bytes(8)) if is_video else full_box(b"smhd", 0, 0, bytes(4))
    where = box(b"dinf", full_box(b"dref", 0, 0, struct.pack(">I", 1), full_box(b"url ", 0, 1)))
    entry = _video_entry(track) if isinstance(track, VideoTrack) else _audio_entry(track)
    table = box(
        b"stbl",
        full_box(b"stsd", 0, 0, struct.pack(">I", 1), entry),
        full_box(b"stts", 0, 0, bytes(4)),
        full_box(b"stsc", 0, 0, bytes(4)),
        full_box(b"stsz", 0, 0, bytes(8)),
        full_box(b"stco", 0, 0, bytes(4)),
    )
    edits = b"" if isinstance(track, VideoTrack) else _edit_list(track.priming)
    return box(b"trak", head, edits, box(b"mdia", media, handler, box(b"minf", kind, where, table)))


def _edit_list(media_time: int) -> bytes:
    return box(
        b"edts",
        full_box(b"elst", 0, 0, struct.pack(">IIiHH", 1, 0, media_time, 1, 0)),
    )


def _video_entry(track: VideoTrack) -> bytes:
    sps, pps = track.sps, track.pps
    config = box(
        b"avcC",
        bytes([1, sps[1], sps[2], sps[3], 0xFF, 0xE1]),
        struct.pack(">H", len(sps)),
        sps,
        bytes([1]),
        struct.pack(">H", len(pps)),
        pps,
        bytes([0xFD, 0xF8, 0xF8, 0]) if sps[1] in _HIGH_PROFILES else b"",
    )
    return box(
        b"avc1",
        bytes(6),
        struct.pack(">H", 1),
        bytes(16),
        struct.pack(">HH", track.width, track.height),
        struct.pack(">IIIH", 0x480000, 0x480000, 0, 1),
        bytes(32),
        struct.pack(">Hh", 24, -1),
        config,
    )


def _audio_entry(track: AudioTrack) -> bytes:
    decoder = _descriptor(
        0x04, bytes([0x40, 0x15, 0, 0, 0]), bytes(8), _descriptor(0x05, track.config)
    )
    stream = _descriptor(0x03, struct.pack(">HB", 1, 0), decoder, _descriptor(0x06, b"\x02"))
    return box(
        b"mp4a",
        bytes(6),
        struct.pack(">H", 1),
        bytes(8),
        struct.pack(">HHHH", track.channels, 16, 0, 0),
        struct.pack(">I", track.rate_hz << 16),
        full_box(b"esds", 0, 0, stream),
    )


def _descriptor(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    assert len(body) < 0x80, "a longer one needs a longer length"
    return bytes([tag, len(body)]) + body
