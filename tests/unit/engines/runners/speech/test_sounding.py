from __future__ import annotations

import numpy as np
import pytest

from duologue.codecs.pcm import float_to_pcm
from duologue.engines.payloads import AudioChunk, CodeFrames, Payload, SpeechMark
from duologue.engines.runners.speech.sounding import ChunkSizes, Sounding, sound
from tests.fakes.speech_model import BOOKS, FakeCodec, codes_of, whole


def frames(text: str, *, heard: bool = False, text_end: int = -1) -> CodeFrames:
    return CodeFrames(codes_of(text).astype("<u2").tobytes(), BOOKS, heard, text_end)


def drained(codec: FakeCodec, sounding: Sounding) -> list[Payload]:
    outputs: list[Payload] = []
    while sounding.is_due:
        (made,) = sound(codec, [sounding])
        outputs += made
    return outputs


def pcm_of(outputs: list[Payload]) -> bytes:
    return b"".join(each.pcm for each in outputs if isinstance(each, AudioChunk))


@pytest.mark.parametrize("sizes", [(1, 6), (1, 1), (3, 4), (50, 50)], ids=str)
def test_chunks_of_any_size_are_the_utterance_at_once(sizes: tuple[int, int]) -> None:
    codec = FakeCodec()
    sounding = Sounding(codec, ChunkSizes(*sizes))
    outputs: list[Payload] = []
    for at, frame in enumerate(codes_of("a whole sentence")):
        sounding.put(CodeFrames(frame.astype("<u2").tobytes(), BOOKS))
        outputs += drained(codec, sounding)
        assert at + 1 < sizes[0] or outputs
    sounding.put(frames("", text_end=16))
    outputs += drained(codec, sounding)

    expected = whole(codes_of("a whole sentence"))
    assert pcm_of(outputs) == float_to_pcm(expected)
    assert outputs[-1] == SpeechMark(16, len(expected))
    assert codec.open == []


def test_pieces_follow_each_other_without_a_gap() -> None:
    codec = FakeCodec()
    sounding = Sounding(codec, ChunkSizes(1, 2))
    sounding.put(frames("hello", text_end=5))
    sounding.put(frames("you", text_end=9))
    outputs = drained(codec, sounding)
    at = 0
    for each in outputs:
        if isinstance(each, AudioChunk):
            assert each.start_sample == at
            at += len(each.pcm) // 2
        else:
            assert each.sample == at
    assert [each.text_end for each in outputs if isinstance(each, SpeechMark)] == [5, 9]


def test_each_clause_is_an_utterance_of_its_own() -> None:
    codec = FakeCodec()
    sounding = Sounding(codec, ChunkSizes(1, 4))
    sounding.put(frames("hello", text_end=5))
    sounding.put(frames("hello", text_end=11))
    alone = float_to_pcm(whole(codes_of("hello")))
    assert pcm_of(drained(codec, sounding)) == alone + alone


def test_the_first_chunk_is_short_and_only_the_first() -> None:
    codec = FakeCodec()
    sounding = Sounding(codec, ChunkSizes(1, 3))
    sounding.put(frames("abcdefg", text_end=7))
    sounding.put(frames("hi", text_end=10))
    drained(codec, sounding)
    assert codec.chunks == [[1], [3], [3], [2]]


def test_what_was_heard_already_moves_the_codec_on_and_is_not_repeated() -> None:
    codec = FakeCodec()
    sounding = Sounding(codec, ChunkSizes(1, 3))
    sounding.put(frames("h", heard=True))
    assert not sounding.is_due
    sounding.put(CodeFrames(codes_of("hello")[1:].astype("<u2").tobytes(), BOOKS, text_end=5))
    outputs = drained(codec, sounding)

    expected = whole(codes_of("hello"))
    known = codec.length(1)
    assert pcm_of(outputs) == float_to_pcm(expected[known:])
    assert outputs[0].start_sample == known
    assert outputs[-1] == SpeechMark(5, len(expected))
    assert codec.chunks == [[4], [1]]


def test_a_clause_of_nothing_is_marked_where_the_speech_stands() -> None:
    codec = FakeCodec()
    sounding = Sounding(codec, ChunkSizes(1, 3))
    sounding.put(frames("", text_end=2))
    assert drained(codec, sounding) == [SpeechMark(2, 0)]
    assert codec.chunks == []


def test_a_clause_whose_only_frame_was_heard_ends_after_it() -> None:
    codec = FakeCodec()
    sounding = Sounding(codec, ChunkSizes(1, 3))
    sounding.put(frames("h", heard=True))
    sounding.put(frames("", text_end=1))
    assert drained(codec, sounding) == [SpeechMark(1, codec.length(1))]


def test_the_chunks_of_several_jobs_are_one_call() -> None:
    codec = FakeCodec()
    both = [Sounding(codec, ChunkSizes(2, 2)), Sounding(codec, ChunkSizes(1, 1))]
    for each in both:
        each.put(frames("hello"))
    sound(codec, both)
    assert codec.chunks == [[2, 1]]


def test_closing_in_the_middle_frees_the_stream() -> None:
    codec = FakeCodec()
    sounding = Sounding(codec, ChunkSizes(1, 2))
    sounding.put(frames("hello"))
    sound(codec, [sounding])
    assert len(codec.open) == 1
    sounding.close()
    assert codec.open == []


def test_codes_keep_their_numbers() -> None:
    sounding = Sounding(FakeCodec(), ChunkSizes(1, 2))
    given = np.array([[65_535, 7]], "<u2")
    sounding.put(CodeFrames(given.tobytes(), BOOKS))
    taken = sounding.take()
    assert taken is not None
    assert taken.tolist() == [[65_535, 7]]
