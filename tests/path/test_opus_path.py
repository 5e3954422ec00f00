"""Opus on a connection that asks for it: both ways, through every station, and what it saves."""

from __future__ import annotations

import numpy as np

from duologue.codecs.opus import OpusDecoder, OpusEncoder
from duologue.codecs.opus_packets import join, split
from duologue.duplex_plugins.echo import EchoPlugin
from duologue.duplex_plugins.scripted import ScriptedPlugin, ScriptedSettings
from duologue.engines.payloads import AudioChunk
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import FormatPatch, OpusFormat, PcmFormat
from duologue.protocol.commands import CancelResponse, CreateResponse, UpdateSession
from duologue.protocol.dialect import Dialect
from duologue.protocol.duplex.json_codec import DUPLEX_JSON
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.events import Event, SessionUpdated
from duologue.protocol.msgpack_codec import DUPLEX_MSGPACK
from duologue.protocol.response_events import AudioDelta, FormattedAudioDelta
from duologue.protocol.session_config import SessionResource
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
    AudioPatch,
    SessionPatch,
)
from duologue.sessions.settings import SessionSettings
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.unit.codecs.tones import level_db, loudest_hz, tone

OPUS = FormatPatch(type="audio/opus")
BOTH_WAYS = AudioPatch(input=AudioInputPatch(format=OPUS), output=AudioOutputPatch(format=OPUS))
AT_ONCE = SessionSettings(send_lead_ms=0)
SECONDS = 10


def voice() -> bytes:
    """Sounds like vowels: a buzz whose pitch and loudness move as those of speech do."""
    t = np.arange(24000 * SECONDS) / 24000
    phase = np.cumsum((140 + 30 * np.sin(5 * t)) / 24000)
    buzz = sum(np.sin(2 * np.pi * k * phase) / k for k in range(1, 12))
    return (6000 * buzz * np.maximum(0.0, np.sin(2 * np.pi * 2.5 * t))).astype("<i2").tobytes()


def said(audio: AudioPatch | None) -> list[Event]:
    """All speech of an answer, as a duplex client gets it."""
    engine = FakeEngine(pipelines=("scripted",))
    plugin = ScriptedPlugin(ScriptedSettings(lines=("Hello.",)))
    patch = DuplexPatch() if audio is None else DuplexPatch(audio=audio)
    call = FakeCall(plugin, engine, AT_ONCE, patch=patch)
    call.send(CreateResponse())
    (stage,) = engine.of("scripted")
    pcm = voice()
    for start in range(0, len(pcm), 9600):
        engine.output(stage.request.id, AudioChunk(pcm[start : start + 9600], 24000))
    engine.complete(stage.request.id)
    return list(call.client.of(FormattedAudioDelta))


def size(deltas: list[Event], dialect: Dialect) -> int:
    return sum(len(dialect.encode_event(delta, 1000) or b"") for delta in deltas)


def test_a_twentieth_of_the_bytes_of_base64_pcm_is_sent() -> None:
    pcm, opus = said(None), said(BOTH_WAYS)
    plain = size(pcm, DUPLEX_JSON)
    assert size(opus, DUPLEX_JSON) < plain / 15
    assert size(opus, DUPLEX_MSGPACK) < plain / 20
    assert len(opus) <= len(pcm) + 1


def test_what_goes_in_as_opus_comes_out_as_opus() -> None:
    call = FakeCall(EchoPlugin(), patch=DuplexPatch(audio=BOTH_WAYS))
    shown = call.client.last(SessionUpdated).session
    assert isinstance(shown, SessionResource)
    assert shown.audio.input.format == shown.audio.output.format == OpusFormat(rate=24000)
    packets = OpusEncoder(24000).encode(tone(24000, 2.0))
    for start in range(0, len(packets), 5):
        call.send(AppendAudio(audio=join(packets[start : start + 5])))
        call.clock.advance(0.1)
    decoder = OpusDecoder(24000)
    heard = b"".join(
        decoder.decode(packet)
        for delta in call.client.of(AudioDelta)
        for packet in split(delta.delta)
    )
    assert call.client.last(FormattedAudioDelta).format == "opus"
    assert loudest_hz(heard, 24000) == 1000
    assert abs(level_db(heard, 24000)) < 1


def test_an_answer_after_one_that_was_cut_off_begins_anew() -> None:
    engine = FakeEngine(pipelines=("scripted",))
    plugin = ScriptedPlugin(ScriptedSettings(lines=("Hello.",)))
    call = FakeCall(plugin, engine, AT_ONCE, patch=DuplexPatch(audio=BOTH_WAYS))
    for cut in (True, False):
        call.send(CreateResponse())
        stage = engine.of("scripted")[-1]
        # 30 ms more than whole packets: some of it waits in the encoder.
        engine.output(stage.request.id, AudioChunk(tone(24000, 0.43), 24000))
        if cut:
            call.send(CancelResponse())
        else:
            engine.complete(stage.request.id)
    deltas = call.client.of(AudioDelta)
    first = [delta for delta in deltas if delta.response_id == deltas[0].response_id]
    second = deltas[len(first) :]
    assert len([packet for delta in first for packet in split(delta.delta)]) == 10
    decoder = OpusDecoder(24000, pre_skip=312)
    heard = b"".join(decoder.decode(p) for delta in second for p in split(delta.delta))
    assert len(heard) / 2 / 24000 >= 0.43
    assert loudest_hz(heard[: 2 * 9600], 24000) == 1000


def test_a_plain_session_gets_opus_only_if_it_asks() -> None:
    call = FakeCall(EchoPlugin())
    session = call.client.events[0].session
    assert session.audio.output.format == PcmFormat(rate=24000)
    call.send(UpdateSession(session=SessionPatch(audio=BOTH_WAYS)))
    shown = call.client.last(SessionUpdated).session
    assert isinstance(shown, SessionResource)
    assert shown.audio.output.format == OpusFormat(rate=24000)
    call.send(UpdateSession(session=SessionPatch(instructions="Be kind.")))
    shown = call.client.last(SessionUpdated).session
    assert isinstance(shown, SessionResource)
    assert shown.audio.output.format == OpusFormat(rate=24000)
