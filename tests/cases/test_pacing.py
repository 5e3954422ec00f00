"""C43, C47 and C48 over a WebSocket: pieces that fit, a pace without drift, holes that are none.

Over WebRTC they are in ``tests/unit/gateway/webrtc``.
"""

from __future__ import annotations

import random
from array import array
from itertools import pairwise
from statistics import mean

import pytest

from duologue.codecs.encoder import output_encoder
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.protocol.append_audio import AppendPlacedAudio
from duologue.protocol.audio_formats import (
    AudioFormat,
    FloatPcmFormat,
    FormatPatch,
    PcmaFormat,
    PcmFormat,
)
from duologue.protocol.commands import CommitAudio, CreateResponse
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.events import ErrorEvent
from duologue.protocol.response_events import AudioDelta, ResponseDone
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
    AudioPatch,
)
from duologue.sessions.settings import SessionSettings
from tests.cases.talk import RATE_HZ, Talk, pcm, speech
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin

WINDOW = 1920
"""Samples that a vocoder makes of each of its frames."""

SHORT_BY = 555
LEFT_CONTEXT = 25


class Vocoder:
    """Makes of each run of frames a window that is short at its end, as stacks of convolutions do.

    Fed with ``LEFT_CONTEXT`` frames from before, it gives what is new; the last one flushes.
    """

    def __init__(self, frames: int) -> None:
        whole = (round(9000 * ((n * 7919) % 4001 / 2000 - 1)) for n in range(frames * WINDOW))
        self.whole = array("h", whole).tobytes()
        self._given = 0

    def decode(self, done: int, more: int, *, last: bool) -> bytes:
        start = max(0, done - LEFT_CONTEXT)
        window = self.whole[2 * start * WINDOW : 2 * (done + more) * WINDOW]
        if not last:
            window = window[: -2 * SHORT_BY]
        new = window[self._given - 2 * start * WINDOW :]
        self._given += len(new)
        return new


def chunks(frames: int, schedule: tuple[int, ...]) -> list[bytes]:
    vocoder, made, done = Vocoder(frames), [], 0
    while done < frames:
        more = min(schedule[min(len(made), len(schedule) - 1)], frames - done)
        made.append(vocoder.decode(done, more, last=done + more == frames))
        done += more
    return made


@pytest.mark.parametrize(
    ("schedule", "frames"),
    [((1, 4, 25), 1 + 4 + 2 * 25 + 3), ((10,), 6 * 10 + 3), ((7, 3), 7 + 17 * 3)],
    ids=lambda each: str(each) if isinstance(each, tuple) else f"{each} frames",
)
@pytest.mark.parametrize(
    "wire",
    [PcmFormat(rate=24000), PcmFormat(rate=8000), PcmaFormat(), FloatPcmFormat(rate=48000)],
    ids=lambda wire: f"{wire.__struct_config__.tag} {getattr(wire, 'rate', 8000)}",
)
def test_c43_pieces_of_a_vocoder_sound_like_one(
    schedule: tuple[int, ...], frames: int, wire: AudioFormat
) -> None:
    patch = DuplexPatch(
        audio=AudioPatch(
            output=AudioOutputPatch(
                format=FormatPatch(
                    type=wire.__struct_config__.tag,  # type: ignore[arg-type]
                    rate=getattr(wire, "rate", None),
                )
            )
        )
    )
    call = FakeCall(FakePlugin(), FakeEngine(pipelines=(STAGE,)), patch=patch)
    call.send(CreateResponse())
    (stage,) = call.engine.of(STAGE)
    pieces = chunks(frames, schedule)
    assert b"".join(pieces) == Vocoder(frames).whole
    call.engine.output(stage.request.id, TextDelta("words"))
    for piece in pieces:
        call.engine.output(stage.request.id, AudioChunk(piece, RATE_HZ))
        call.clock.advance(0.2)
    call.engine.complete(stage.request.id)
    call.clock.advance(10)
    heard = b"".join(delta.delta for delta in call.client.of(AudioDelta))
    at_once = output_encoder(RATE_HZ, wire)
    assert heard == at_once.encode(Vocoder(frames).whole) + at_once.flush()
    assert call.client.last(ResponseDone).response.status == "completed"


def test_c47_half_an_hour_goes_out_at_its_pace() -> None:
    settings = SessionSettings(
        send_lead_ms=1000, max_duration_s=7200, output_buffer_ms=20_000, response_timeout_s=60
    )
    talk = Talk(settings=settings, credit=4000)
    dice = random.Random(47)
    talk.send(CreateResponse())
    request = talk.stage().request
    talk.engine.output(request.id, TextDelta("words"))
    began, made_s, heard_bytes = talk.clock.now(), 0.0, 0
    ahead_ms: list[float] = []
    for _ in range(1800 * 5):
        # Looked at at any moment between two pieces; each tick has up to 3 ms of other work.
        talk.clock.advance(dice.uniform(0.1, 0.3) - 0.0015 + dice.uniform(0, 0.003))
        while made_s < talk.clock.now() - began + 2:
            talk.engine.output(request.id, AudioChunk(pcm(200), RATE_HZ))
            made_s += 0.2
        heard_bytes += sum(len(delta.delta) for delta in talk.client.of(AudioDelta))
        talk.client.deliveries.clear()
        passed_ms = (talk.clock.now() - began) * 1000
        ahead_ms.append(heard_bytes / 2 / RATE_HZ * 1000 - passed_ms)
    assert passed_ms > 1_790_000
    # Neither a silence nor a jump: always ahead by the lead, give or take the pieces it goes in.
    assert min(ahead_ms[50:]) > 0
    assert max(ahead_ms) <= settings.send_lead_ms + 2 * settings.delta_ms
    minute = 60 * 5
    drift_ms = mean(ahead_ms[-minute:]) - mean(ahead_ms[minute : 2 * minute])
    assert abs(drift_ms) < 20


def test_c48_a_hole_of_twelve_seconds_ends_nothing() -> None:
    talk = Talk()
    talk.send(speech(600), CommitAudio(), CreateResponse())
    response = talk.answer("one two", 2000)
    talk.clock.advance(12)
    assert talk.done() == []
    assert talk.answer("three four", 2000) == response
    talk.finish()
    talk.play_to_the_end()
    assert talk.done() == [("completed", None)]
    assert len(talk.audio_of(response)) == 4 * 48_000
    assert talk.client.of(ErrorEvent) == []
    talk.close()


def test_c48_the_line_is_never_quiet_for_long_while_somebody_is_there() -> None:
    """A microphone says something all the time, so the duplex dialect does, too."""
    patch = DuplexPatch(audio=AudioPatch(input=AudioInputPatch(turn_detection=None)))
    call = FakeCall(FakePlugin(), FakeEngine(pipelines=(STAGE,)), patch=patch)
    call.send(CreateResponse())
    said, times = 0, []
    for _ in range(12 * 50):
        before = len(call.client.deliveries)
        call.send(AppendPlacedAudio(audio=bytes(640), start_sample=said))
        said += 320
        call.clock.advance(0.02)
        if len(call.client.deliveries) > before:
            times.append(call.clock.now())
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert max(gaps) < 5
    assert call.client.of(ErrorEvent) == []
