from __future__ import annotations

import pytest

from duologue.core.errors import LimitExceeded
from duologue.engines.payloads import AudioChunk, DecodeSpeech, Transcript
from duologue.protocol.audio_formats import PcmFormat, PcmuFormat
from duologue.sessions.effects import AppendInput, CancelRequest, SubmitRequest
from duologue.sessions.hearing.item_speech import PAUSE_S, ItemSpeech
from duologue.sessions.hearing.transcription import Transcriber
from duologue.sessions.requests import Requests

RATE_HZ = 16000
T = 100.0
PLAIN = PcmFormat(rate=16000)


class Bench:
    def __init__(self, capacity_ms: int = 10_000) -> None:
        self.requests = Requests("s")
        self.transcriber = Transcriber(self.requests, "asr", RATE_HZ, 500)
        self.items = ItemSpeech(self.transcriber, RATE_HZ, capacity_ms)

    def inputs(self) -> list[object]:
        """What the engine was asked since the last call."""
        shown: list[object] = []
        for effect in self.requests.take_effects():
            match effect:
                case AppendInput(payload=AudioChunk() as chunk):
                    shown.append((chunk.start_sample, len(chunk.pcm) // 2))
                case AppendInput(payload=DecodeSpeech() as decode):
                    shown.append((decode.kind, decode.end_sample))
                case SubmitRequest(request=request):
                    shown.append(request.pipeline)
                case other:
                    shown.append(type(other))
        return shown


def speech(ms: int) -> bytes:
    return b"\x01\x00" * (ms * 16)


def test_long_speech_is_taken_a_slice_at_a_time_and_asked_about_once() -> None:
    bench = Bench()
    assert bench.items.due_at is None
    bench.items.add("a", speech(2500), PLAIN, T)
    assert bench.items.due_at == T
    assert bench.inputs() == []
    bench.items.work_off(T + 1)
    assert bench.inputs() == ["asr", (0, 16000)]
    assert bench.items.due_at == T + 1 + PAUSE_S
    bench.items.work_off(T + 2)
    bench.items.work_off(T + 3)
    assert bench.inputs() == [(16000, 16000), (32000, 8000), ("final", 40000)]
    assert bench.items.due_at is None
    ready = bench.transcriber.on_transcript("a", Transcript("hello", "final", 40000))
    assert ready is not None
    assert (ready.text, ready.audio_samples) == ("hello", 40000)


def test_items_wait_for_each_other() -> None:
    bench = Bench()
    for item_id in ("a", "b"):
        bench.items.add(item_id, speech(100), PLAIN, T)
    bench.items.work_off(T)
    assert bench.inputs() == ["asr", (0, 1600), ("final", 1600)]
    assert bench.items.due_at == T + PAUSE_S
    bench.items.work_off(T)
    assert bench.inputs() == ["asr", (0, 1600), ("final", 1600)]


def test_every_sample_of_another_format_gets_there() -> None:
    bench = Bench()
    bench.items.add("a", b"\xff" * 1600, PcmuFormat(), T)
    bench.items.work_off(T)
    asked = bench.inputs()
    assert asked[-1] == ("final", 3200)
    assert sum(size for _, size in asked[1:-1]) == 3200  # type: ignore[misc]


def test_what_may_wait_is_bounded_and_makes_room_as_it_is_worked_off() -> None:
    bench = Bench(capacity_ms=2000)
    bench.items.check_room(2 * 32_000, PLAIN, "p")
    bench.items.add("a", speech(1500), PLAIN, T)
    with pytest.raises(LimitExceeded, match="1500 ms") as refusal:
        bench.items.check_room(32_000, PLAIN, "item.content[0].audio")
    assert refusal.value.param == "item.content[0].audio"
    bench.items.work_off(T)
    bench.items.check_room(32_000, PLAIN, "p")


def test_what_is_given_up_is_taken_no_further() -> None:
    bench = Bench()
    bench.items.add("a", speech(2500), PLAIN, T)
    bench.items.work_off(T)
    assert bench.items.drop("a")
    assert not bench.items.drop("a")
    assert bench.items.due_at is None
    bench.transcriber.drop("a")
    assert bench.inputs()[-1] is CancelRequest
    bench.items.check_room(10 * 32_000, PLAIN, "p")


def test_a_recogniser_that_fails_on_the_way_gets_no_more() -> None:
    bench = Bench()
    bench.items.add("a", speech(1500), PLAIN, T)
    bench.items.work_off(T)
    bench.transcriber.failed("a")
    bench.inputs()
    bench.items.work_off(T)
    assert bench.inputs() == []
