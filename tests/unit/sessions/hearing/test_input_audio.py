"""The input audio buffer, on the session's sample clock."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import ClientError, LimitExceeded
from duologue.protocol.audio_formats import OpusFormat, PcmaFormat, PcmFormat, PcmuFormat
from duologue.sessions.hearing.input_audio import InputAudio

RATE_HZ = 16000


def make_audio(
    capacity_ms: int = 1000, *, rate_hz: int = RATE_HZ, retain: bool = True
) -> InputAudio:
    return InputAudio(PcmFormat(rate=16000), rate_hz, capacity_ms, retain=retain)


def pcm(samples: int, start: int = 0) -> bytes:
    """A ramp, so that every sample says where it stands."""
    return b"".join((start + i).to_bytes(2, "little") for i in range(samples))


@given(cuts=st.lists(st.integers(0, 2000), max_size=20))
def test_any_chunking_gives_the_same_samples(cuts: list[int]) -> None:
    wire = pcm(1000)
    audio = make_audio()
    edges = [0, *sorted(cuts), len(wire)]
    frames = [audio.append(wire[a:b]) for a, b in pairwise(edges)]
    heard = [frame for frame in frames if frame is not None]
    assert b"".join(frame.pcm for frame in heard) == wire == audio.read(0).pcm
    places = [(frame.start_sample, frame.end_sample) for frame in heard]
    assert [start for start, _ in places] == [0, *(end for _, end in places[:-1])]
    assert audio.next_sample == 1000


def test_half_a_sample_is_no_frame_yet() -> None:
    audio = make_audio()
    assert audio.append(b"\x01") is None
    assert (audio.next_sample, audio.held_bytes) == (0, 0)


def test_half_a_sample_at_the_end_is_dropped_counted_and_shifts_nothing() -> None:
    audio = make_audio()
    audio.append(pcm(10)[:-1])
    audio.end_utterance()
    audio.append(pcm(5, start=100))
    assert audio.read(0).pcm == pcm(9) + pcm(5, start=100)
    assert audio.dropped_bytes == 1


def test_wire_formats_become_one_rate() -> None:
    audio = make_audio(rate_hz=16000)
    audio.set_format(PcmuFormat())
    audio.append(b"\xff" * 800)
    assert audio.pending_samples < 5 * 16
    assert audio.next_sample + audio.pending_samples == 1600


def test_a_change_of_format_in_mid_stream_counts_the_half_sample_it_drops() -> None:
    audio = make_audio()
    audio.append(pcm(10) + b"\x01")
    audio.set_format(PcmFormat(rate=16000))
    assert audio.dropped_bytes == 0
    audio.set_format(PcmaFormat())
    audio.set_format(PcmFormat(rate=16000))
    audio.append(pcm(10))
    assert audio.read(0).pcm == pcm(10) * 2
    assert audio.dropped_bytes == 1


def test_what_does_not_fit_is_refused_whole_and_the_buffer_stays() -> None:
    audio = make_audio(capacity_ms=100)
    audio.append(pcm(1500))
    with pytest.raises(LimitExceeded) as refusal:
        audio.append(pcm(200))
    assert refusal.value.code == "input_audio_buffer_full"
    assert "the buffer holds 93 ms" in refusal.value.message
    assert "the limit is 100 ms" in refusal.value.message
    assert audio.held_ms == 93
    audio.append(pcm(99))
    assert audio.next_sample == 1599


def test_there_is_room_again_after_a_commit() -> None:
    audio = make_audio(capacity_ms=100)
    audio.append(pcm(1599))
    audio.drop_before(1599)
    assert audio.append(pcm(1599)) is not None
    assert audio.start_sample == 1599


def test_a_stretch_is_read_as_far_as_it_is_still_there() -> None:
    audio = make_audio()
    audio.append(pcm(100))
    audio.drop_before(40)
    frame = audio.read(20, 60)
    assert (frame.start_sample, frame.pcm) == (40, pcm(20, start=40))
    assert audio.read(90, 500).pcm == pcm(10, start=90)
    assert audio.read(70, 60).pcm == b""


def test_forgetting_goes_forward_only_and_never_past_the_end() -> None:
    audio = make_audio()
    audio.append(pcm(100))
    audio.drop_before(50)
    audio.drop_before(10)
    assert (audio.start_sample, audio.held_bytes) == (50, 100)
    audio.drop_before(1000)
    assert (audio.start_sample, audio.held_bytes, audio.held_ms) == (100, 0, 0)


def test_without_commits_nothing_is_kept_and_nothing_is_refused() -> None:
    audio = make_audio(capacity_ms=1, retain=False)
    audio.check_room(bytes(1 << 20))
    frame = audio.append(pcm(1000))
    assert frame is not None
    assert frame.pcm == pcm(1000)
    assert (audio.held_bytes, audio.start_sample, audio.next_sample) == (0, 1000, 1000)


def test_what_came_in_is_counted_as_it_was_on_the_wire() -> None:
    audio = InputAudio(PcmFormat(rate=8000), 16000, 1000)
    audio.append(bytes(2 * 80 + 1))
    assert audio.wire_samples == 80
    audio.set_format(PcmuFormat())
    audio.append(bytes(40))
    assert audio.wire_samples == 120


MS_20 = b"\x00\x03\xf8\xff\xfe"


@pytest.mark.parametrize("retain", [True, False])
def test_opus_is_decoded_and_counted(retain: bool) -> None:
    audio = InputAudio(OpusFormat(rate=24000), 16000, 1000, retain=retain)
    frame = audio.append(MS_20 * 2)
    assert frame is not None
    assert audio.wire_samples == 960
    assert audio.next_sample + audio.pending_samples == 640


@pytest.mark.parametrize(
    ("wire", "code"),
    [
        (MS_20[:-1], "undecodable_audio"),
        (MS_20 * 101, "limit_exceeded"),
        (bytes(48_001), "limit_exceeded"),
    ],
)
@pytest.mark.parametrize("retain", [True, False])
def test_opus_that_cannot_be_taken_in_is_refused_whole(
    wire: bytes, code: str, retain: bool
) -> None:
    audio = InputAudio(OpusFormat(rate=24000), 16000, 10_000, retain=retain)
    with pytest.raises(ClientError) as caught:
        audio.append(wire)
    assert (caught.value.code, caught.value.param) == (code, "audio")
    assert (audio.wire_samples, audio.next_sample) == (0, 0)


def test_opus_fills_the_buffer_as_any_other_audio() -> None:
    audio = InputAudio(OpusFormat(rate=24000), 16000, 100)
    audio.append(MS_20 * 4)
    with pytest.raises(LimitExceeded):
        audio.append(MS_20 * 2)
    assert audio.wire_samples == 4 * 480
