from __future__ import annotations

import pytest

from duologue.clients.arguments import (
    checked_bytes,
    checked_pcm,
    checked_recording,
    checked_text,
)
from duologue.core.errors import CodecError


def test_what_is_right_passes_as_it_is() -> None:
    pcm = b"\x01\x02"
    assert checked_recording(pcm) is pcm
    assert checked_pcm(bytearray(pcm)) == checked_pcm(memoryview(pcm)) == pcm
    assert checked_text("hello") == "hello"
    assert checked_recording(b"") == b""


def test_wrong_types_are_named() -> None:
    with pytest.raises(TypeError, match=r"audio .* must be bytes, not str; to send a file, read"):
        checked_recording("q.wav")
    with pytest.raises(TypeError, match=r"a picture must be bytes, not list$"):
        checked_bytes([1, 2], "a picture")
    with pytest.raises(TypeError, match="the text must be a str, not bytes"):
        checked_text(b"hello")


@pytest.mark.parametrize(
    ("head", "kind"), [(b"RIFF", "WAV"), (b"fLaC", "FLAC"), (b"OggS", "Ogg"), (b"ID3\x04", "MP3")]
)
def test_a_file_is_no_recording_though_a_chunk_may_begin_like_one(head: bytes, kind: str) -> None:
    with pytest.raises(CodecError, match=rf"{kind} file data.*read_wav.*ffmpeg") as refused:
        checked_recording(head + bytes(100))
    assert refused.value.code == "undecodable_audio"
    assert checked_pcm(head + bytes(100))
