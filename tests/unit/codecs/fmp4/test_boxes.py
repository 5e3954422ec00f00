from __future__ import annotations

import struct

from duologue.codecs.fmp4.boxes import AudioTrack, Run, Sample, VideoTrack, fragment, header
from tests.unit.codecs.fmp4.film import boxes

VIDEO = VideoTrack(1, 64, 48, 90_000, bytes([0x67, 0x42, 0xC0, 0x0D, 1]), b"\x68\x01")
AUDIO = AudioTrack(2, 48_000, 1, b"\x11\x88", 1024)


def test_a_header_describes_each_track() -> None:
    kinds = [kind for kind, _ in boxes(header([VIDEO, AUDIO]))]
    assert kinds[:2] == [b"ftyp", b"moov"]
    assert kinds.count(b"trak") == kinds.count(b"trex") == 2
    assert kinds.count(b"edts") == 1, "sound alone is primed"
    assert (VIDEO.codec, AUDIO.codec) == ("avc1.42C00D", "mp4a.40.2")


def test_a_fragment_says_where_the_data_of_each_run_begins() -> None:
    runs = [
        Run(1, 7500, [Sample(b"picture", 3750, True), Sample(b"next", 3750, False)]),
        Run(2, 2048, [Sample(b"sound", 1024, True)]),
    ]
    data = fragment(3, runs)
    found = [(kind, body) for kind, body in boxes(data)]
    offsets = [struct.unpack_from(">Ii", body, 4) for kind, body in found if kind == b"trun"]
    assert [count for count, _ in offsets] == [2, 1]
    assert data[offsets[0][1] :].startswith(b"picturenext")
    assert data[offsets[1][1] :] == b"sound"
    assert [struct.unpack_from(">Q", body, 4)[0] for kind, body in found if kind == b"tfdt"] == [
        7500,
        2048,
    ]
