"""C25 to C37: the input buffer, formats and the configuration."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from duologue.codecs.g711 import decode_alaw, decode_ulaw, encode_alaw, encode_ulaw
from duologue.core.errors import ClientError, LimitExceeded
from duologue.duplex_plugins.contract import Audio, Capabilities, ResponseRequested
from duologue.engines.payloads import AudioChunk
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import FormatPatch, format_rate_hz
from duologue.protocol.commands import ClearAudio, CommitAudio, CreateResponse, UpdateSession
from duologue.protocol.events import (
    AudioCommitted,
    ErrorEvent,
    SessionCreated,
    SessionUpdated,
)
from duologue.protocol.json_codec import decode_command, encode_command
from duologue.protocol.limits import MAX_APPEND_BYTES
from duologue.protocol.response_events import AudioDelta
from duologue.protocol.session_config import FunctionTool
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
    AudioPatch,
    SessionPatch,
    TranscriptionPatch,
)
from duologue.sessions.settings import SessionSettings
from tests.cases.talk import (
    DETECTING,
    READS,
    Talk,
    detection,
    formats,
    listening,
    pcm,
    speech,
)
from tests.fakes.plugin import STAGE

EMPTY = "input_audio_buffer_commit_empty"
HEARS = Capabilities(hears_audio=True)
ULAW = FormatPatch(type="audio/pcmu")
ALAW = FormatPatch(type="audio/pcma")


def codes(talk: Talk) -> list[str | None]:
    return [event.error.code for event in talk.client.of(ErrorEvent)]


def committed_audio(talk: Talk) -> list[bytes]:
    """What the recogniser got of each turn."""
    return [
        b"".join(p.pcm for p in fake.inputs if isinstance(p, AudioChunk))
        for fake in talk.engine.of("asr")
    ]


# C25


@pytest.mark.parametrize("before", [(), (speech(40),), (speech(600), CommitAudio())])
def test_c25_a_commit_of_nothing_or_of_too_little_is_refused(
    before: tuple[AppendAudio, ...],
) -> None:
    talk = Talk()
    talk.send(*before, CommitAudio(event_id="e1"))
    assert codes(talk) == [EMPTY]
    assert len(talk.client.of(AudioCommitted)) == len(before) // 2
    assert talk.plugin.of(ResponseRequested) == []
    talk.probe()
    talk.close()


def test_c25_what_was_too_little_counts_towards_the_next_commit() -> None:
    talk = Talk()
    talk.send(speech(40), CommitAudio(), speech(60), CommitAudio())
    assert codes(talk) == [EMPTY]
    assert len(talk.client.of(AudioCommitted)) == 1
    talk.close()


def test_c25_a_commit_right_after_the_detectors_is_empty() -> None:
    talk = Talk(DETECTING)
    talk.turn(20, 16)
    assert len(talk.client.of(AudioCommitted)) == 1
    talk.send(CommitAudio(event_id="e1"))
    assert codes(talk) == [EMPTY]
    assert len(talk.client.of(AudioCommitted)) == 1
    talk.close()


def test_c25_a_commit_after_a_clear_is_empty() -> None:
    talk = Talk()
    talk.send(speech(600), ClearAudio(), CommitAudio())
    assert codes(talk) == [EMPTY]
    talk.probe()
    talk.close()


def test_c25_what_comes_with_a_commit_belongs_to_the_next_turn() -> None:
    talk = Talk(capabilities=READS)
    talk.send(listening(format=FormatPatch(rate=16000)))
    one, two = b"\x01\x00" * 9600, b"\x02\x00" * 9600
    talk.send(AppendAudio(audio=one), CommitAudio(), AppendAudio(audio=two), CommitAudio())
    assert committed_audio(talk) == [one, two]
    talk.close()


# C26

LONG_S = 1.0
"""More than it takes to work off a message with minutes of audio."""

RAMP = b"".join((n % 30_000).to_bytes(2, "little") for n in range(48_000))
"""Two seconds at 24 kHz."""


def cut(sizes: tuple[int, ...]) -> list[bytes]:
    """Cut the ramp into pieces of these sizes, over and over."""
    pieces, start, number = [], 0, 0
    while start < len(RAMP):
        size = sizes[number % len(sizes)]
        pieces.append(RAMP[start : start + size])
        start, number = start + size, number + 1
    return pieces


@pytest.mark.parametrize("sizes", [(96_000,), (1,), (3,), (1323,), (4063, 1697)])
def test_c26_the_same_samples_arrive_however_they_are_cut(sizes: tuple[int, ...]) -> None:
    talk = Talk(capabilities=Capabilities(hears_audio=True, input_rate_hz=24000))
    for piece in cut(sizes):
        talk.send(AppendAudio(audio=piece))
    talk.send(CommitAudio())
    talk.clock.advance(LONG_S)
    frames = [item.frame for item in talk.plugin.of(Audio)]
    assert b"".join(frame.pcm for frame in frames) == RAMP
    assert codes(talk) == []
    assert all(a.end_sample == b.start_sample for a, b in pairwise(frames))
    talk.close()


def test_c26_a_missing_last_byte_costs_one_sample_and_does_not_shift_the_next_turn() -> None:
    talk = Talk(capabilities=Capabilities(reads_transcripts=True, input_rate_hz=24000))
    talk.send(AppendAudio(audio=RAMP[:-1]), CommitAudio())
    talk.send(AppendAudio(audio=RAMP), CommitAudio())
    talk.clock.advance(LONG_S)
    assert committed_audio(talk) == [RAMP[:-2], RAMP]
    assert talk.machine.listening.audio.dropped_bytes == 1
    assert codes(talk) == []
    talk.close()


# C30


@pytest.mark.parametrize(("more", "taken"), [(-1, True), (0, True), (1, False)])
def test_c30_one_message_holds_so_much_audio_and_no_more(more: int, taken: bool) -> None:
    message = encode_command(AppendAudio(audio=bytes(MAX_APPEND_BYTES + more)))
    if taken:
        command = decode_command(message)
        assert isinstance(command, AppendAudio)
        assert len(command.audio) == MAX_APPEND_BYTES + more
    else:
        with pytest.raises(LimitExceeded) as refusal:
            decode_command(message)
        assert refusal.value.param == "audio"


def test_c30_a_full_buffer_refuses_keeps_and_can_still_be_committed() -> None:
    talk = Talk(settings=SessionSettings(input_buffer_ms=60_000))
    megabyte = AppendAudio(audio=bytes(1 << 20))
    talk.send(megabyte, megabyte, AppendAudio(event_id="e1", audio=megabyte.audio))
    talk.clock.advance(LONG_S)
    error = talk.client.error().error
    assert (error.code, error.event_id) == ("input_audio_buffer_full", "e1")
    assert talk.machine.listening.audio.held_ms == pytest.approx(43_690, abs=10)
    talk.send(CommitAudio())
    assert len(talk.client.of(AudioCommitted)) == 1
    talk.probe()
    talk.close()


# C31

FORMATS = {
    "pcm 8k": FormatPatch(type="audio/pcm", rate=8000),
    "pcm 16k": FormatPatch(type="audio/pcm", rate=16000),
    "pcm 24k": FormatPatch(type="audio/pcm", rate=24000),
    "pcm 48k": FormatPatch(type="audio/pcm", rate=48000),
    "u-law": ULAW,
    "a-law": ALAW,
}
LEVEL = 8000


def rate_of(name: str) -> int:
    return 8000 if "law" in name else int(FORMATS[name].rate or 0)


def tone(rate_hz: int) -> bytes:
    """One second of 1 kHz."""
    wave = LEVEL * np.sin(2 * np.pi * 1000 * np.arange(rate_hz) / rate_hz)
    return np.rint(wave).astype("<i2").tobytes()


def check_tone(heard: bytes, rate_hz: int) -> None:
    """1,000 Hz to 5 Hz, one second to a frame, the level to 1 dB."""
    samples = np.frombuffer(heard, "<i2").astype(float)
    assert abs(len(samples) - rate_hz) <= rate_hz // 50
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    loudest = np.argmax(spectrum) * rate_hz / len(samples)
    assert abs(loudest - 1000) <= 5
    level = np.sqrt(np.mean(samples**2) * 2)
    assert abs(20 * np.log10(level / LEVEL)) <= 1


@pytest.mark.parametrize(("inp", "out"), [*product(FORMATS, repeat=2)])
def test_c31_every_format_is_heard_and_spoken_at_its_own_rate(inp: str, out: str) -> None:
    talk = Talk(capabilities=HEARS)
    talk.send(formats(FORMATS[inp], FORMATS[out]))
    wire = tone(rate_of(inp))
    if "law" in inp:
        wire = (encode_ulaw if inp == "u-law" else encode_alaw)(wire)
    for start in range(0, len(wire), 1000):
        talk.send(AppendAudio(audio=wire[start : start + 1000]))
    check_tone(b"".join(item.frame.pcm for item in talk.plugin.of(Audio)), 16000)
    talk.send(CreateResponse())
    spoken = tone(24000)
    for start in range(0, len(spoken), 4800):
        talk.engine.output(talk.stage().request.id, AudioChunk(spoken[start : start + 4800], 24000))
    talk.finish()
    talk.play_to_the_end()
    heard = b"".join(event.delta for event in talk.client.of(AudioDelta))
    if "law" in out:
        heard = (decode_ulaw if out == "u-law" else decode_alaw)(heard)
    check_tone(heard, rate_of(out))
    talk.close()


@pytest.mark.parametrize(
    "patch", [FormatPatch(rate=44100), FormatPatch(type="audio/pcmu", rate=16000)]
)
def test_c31_a_rate_that_there_is_not_is_refused_and_not_noise(patch: FormatPatch) -> None:
    talk = Talk()
    talk.send(listening(format=patch))
    assert talk.client.error().error.param == "session.audio.input.format.rate"
    talk.probe()
    talk.close()


# C32, C33, C35, C37


def test_c32_a_format_never_changes_unasked() -> None:
    talk = Talk(DETECTING)
    talk.send(formats(ULAW, ULAW))
    tool = FunctionTool(name="f")
    updates = (
        UpdateSession(session=SessionPatch(instructions="Be brief.")),
        detection(type="server_vad", threshold=0.6),
        UpdateSession(session=SessionPatch(tools=(tool,))),
        UpdateSession(session=SessionPatch(audio=AudioPatch(output=AudioOutputPatch(speed=1.1)))),
        # A hand-off to another agent: all but the formats.
        UpdateSession(
            session=SessionPatch(
                type="realtime",
                instructions="You are the other one.",
                output_modalities=("audio",),
                tools=(),
                audio=AudioPatch(
                    input=AudioInputPatch(
                        transcription=TranscriptionPatch(model="m"), turn_detection=None
                    ),
                    output=AudioOutputPatch(voice="verse"),
                ),
            )
        ),
    )
    for update in updates:
        talk.send(update)
        shown = talk.client.last(SessionUpdated).session.audio
        assert format_rate_hz(shown.input.format) == 8000
        assert shown.output.format == shown.input.format  # type: ignore[union-attr]
    talk.send(AppendAudio(audio=b"\xff" * 8000))
    assert talk.machine.listening.audio.next_sample == pytest.approx(16000, abs=100)
    talk.send(CreateResponse())
    talk.engine.output(talk.stage().request.id, AudioChunk(pcm(1000), 24000))
    talk.finish()
    talk.play_to_the_end()
    assert sum(len(event.delta) for event in talk.client.of(AudioDelta)) == 8000
    talk.close()


@pytest.mark.parametrize(
    "audio",
    [
        '{"input":{"format":{"type":"g711-ulaw"}}}',
        '{"input":{"format":{"type":"pcm24"}}}',
        '{"input":{"turn_detection":{"type":"server_vad","foo":1}}}',
        '{"input":{"format":{"type":"audio/pcm","foo":1}}}',
    ],
)
def test_c33_a_spelling_that_is_close_is_refused_by_name(audio: str) -> None:
    message = '{"type":"session.update","session":{"instructions":"x","audio":' + audio + "}}"
    with pytest.raises(ClientError) as refusal:
        decode_command(message.encode())
    assert refusal.value.param is not None
    assert refusal.value.param.startswith("session.audio.input")


def test_c33_a_key_that_nobody_knows_is_ignored_where_it_changes_no_manners() -> None:
    command = decode_command(b'{"type":"session.update","session":{"foo":1,"instructions":"x"}}')
    assert isinstance(command, UpdateSession)
    assert command.session.instructions == "x"


@pytest.mark.parametrize(
    ("patch", "param"),
    [
        (AudioPatch(output=AudioOutputPatch(voice="nope")), "session.audio.output.voice"),
        (
            detection(type="semantic_vad").session.audio,
            "session.audio.input.turn_detection.type",
        ),
    ],
)
def test_c33_a_value_that_there_is_not_changes_nothing_also_not_what_was_right(
    patch: AudioPatch, param: str
) -> None:
    talk = Talk(DETECTING)
    before = talk.machine.config
    talk.send(UpdateSession(session=SessionPatch(instructions="valid", audio=patch)))
    assert talk.client.error().error.param == param
    assert talk.machine.config == before
    assert talk.client.of(SessionUpdated) == []
    talk.close()


def test_c35_new_instructions_count_for_answers_that_begin_after_them() -> None:
    talk = Talk()

    def instruct(text: str) -> None:
        talk.send(UpdateSession(session=SessionPatch(instructions=text)))

    instruct("P1")
    talk.probe()
    instruct("P2")
    talk.probe()
    talk.send(CreateResponse())
    response = talk.answer("one", 200)
    instruct("P3")
    talk.answer(" two", 200)
    talk.finish()
    talk.play_to_the_end()
    assert talk.audio_of(response) == pcm(400)
    talk.probe()
    asked = [request.config.instructions for request in talk.plugin.of(ResponseRequested)]
    assert asked == ["P1", "P2", "P2", "P3"]
    talk.close()


def test_c37_an_update_before_the_greeting_was_read_counts_for_the_audio_after_it() -> None:
    talk = Talk()
    talk.client.reading = False
    talk.send(formats(ULAW, ULAW), AppendAudio(audio=b"\xff" * 8000), CommitAudio())
    talk.client.reading = True
    talk.client.read()
    kinds = [type(event) for event in talk.client.events][:3]
    assert kinds == [SessionCreated, SessionUpdated, AudioCommitted]
    assert talk.machine.listening.audio.next_sample == pytest.approx(16000, abs=100)
    assert talk.engine.of(STAGE) == []
    talk.close()
