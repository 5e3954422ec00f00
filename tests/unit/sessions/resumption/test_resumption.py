"""A session outlives its connection: what the next one is told, and what it hears."""

from __future__ import annotations

import random

import pytest

from duologue.duplex_plugins.contract import Audio, Capabilities
from duologue.protocol.append_audio import AppendAudio, AppendPlacedAudio
from duologue.protocol.commands import ClearAudio, UpdateSession
from duologue.protocol.duplex.commands import (
    AcknowledgeEvents,
    BargeIn,
)
from duologue.protocol.duplex.events import (
    ResyncRequired,
    SessionResumed,
)
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.events import AudioCleared, ErrorEvent
from duologue.protocol.response_events import (
    AudioDelta,
    AudioTranscriptDelta,
    FormattedAudioDelta,
    ResponseDone,
)
from duologue.sessions.resumption.resumption import _seconds
from duologue.sessions.settings import SessionSettings
from tests.fakes.call import FakeConnection
from tests.fakes.plugin import FakePlugin
from tests.unit.sessions.resumption.resumption_bench import (
    answer,
    call,
    counting,
    heard,
    refusal,
)

# What the connections are told


def test_the_next_connection_is_told_where_things_stand() -> None:
    made = call()
    token = made.client.token
    made.send(UpdateSession(session=DuplexPatch(instructions="Changed.")))
    made.lose()
    assert made.metrics.sessions_detached.value == 1
    made.clock.advance(20)
    made.resume()
    resumed = made.client.last(SessionResumed)
    assert resumed.session.instructions == "Changed."
    assert (resumed.attachment_generation, resumed.session_id) == (2, made.session.id)
    assert resumed.resume_token not in ("", token)
    assert made.metrics.sessions_detached.value == 0
    made.send(ClearAudio())
    assert made.client.last(AudioCleared)


def test_the_old_token_is_void_once_the_client_has_shown_that_it_has_the_new_one() -> None:
    made = call()
    first = made.client.token
    made.lose()
    made.resume()
    made.send(AcknowledgeEvents(server_event_seq=2))
    assert made.manager.claim(made.session.id, first, made.session.owner, 2)
    made.send(ClearAudio())
    made.send(AcknowledgeEvents(server_event_seq=made.client.received))
    assert refusal(made, first) == "invalid_resume_token"


@pytest.mark.parametrize(
    ("received", "code"), [(-1, "invalid_session_resume"), (3, "invalid_session_resume")]
)
def test_a_number_that_cannot_be_is_refused(received: int, code: str) -> None:
    assert refusal(call(), received=received) == code


# What is heard


@pytest.mark.parametrize("seed", range(8))
def test_the_answer_is_heard_to_the_sample_however_often_the_connection_breaks(seed: int) -> None:
    rng = random.Random(seed)
    made = call()
    answer(made, seconds=8.0, whole=True)
    for _ in range(rng.randint(2, 6)):
        made.clock.advance(rng.uniform(0, 2))
        if rng.random() < 0.7:
            made.send(AcknowledgeEvents(server_event_seq=made.client.received))
        made.client.broken = True
        made.clock.advance(rng.uniform(0, 2))
        if rng.random() < 0.5:
            made.lose()
            made.clock.advance(rng.uniform(0, 20))
        made.resume()
    made.clock.advance(30)
    assert heard(made) == counting(0, 8 * 24000)
    assert made.client.last(ResponseDone).response.status == "completed"
    assert made.client.of(ResyncRequired) == made.client.of(ErrorEvent) == []
    made.send(AcknowledgeEvents(server_event_seq=made.client.received))
    assert made.session.journal is not None
    tuple(made.manager.note_fills())
    assert (len(made.session.journal), made.metrics.journal_bytes.value) == (0, 0)


@pytest.mark.parametrize("seed", range(8))
def test_the_person_is_heard_to_the_sample_however_often_the_connection_breaks(seed: int) -> None:
    rng = random.Random(seed)
    made = call(plugin=FakePlugin(answers=False))
    position = 0
    for _ in range(30):
        if rng.random() < 0.3:
            # What was on its way is lost, in the middle of a sample too.
            if rng.random() < 0.5:
                made.send(AppendAudio(audio=counting(position, 1)[:1]))
            made.lose()
            made.clock.advance(rng.uniform(0, 10))
            made.resume()
            expected = made.client.last(SessionResumed).next_sample
            assert expected == position
            position = max(0, expected - rng.randint(0, 2000))
        size = rng.randint(1, 4000)
        made.send(AppendPlacedAudio(audio=counting(position, size), start_sample=position))
        made.clock.advance(size / 24000)
        position += size
        reached = made.machine.extras.next_sample()
        assert position <= reached
        position = reached
    audio = made.machine.listening.audio
    whole = audio.read(0).pcm
    assert made.client.of(ErrorEvent) == []
    assert audio.wire_samples == position
    assert made.engine.of("vad") or whole


def test_the_model_hears_each_sample_once() -> None:
    plugin = FakePlugin(Capabilities(hears_audio=True, input_rate_hz=16000), answers=False)
    made = call(plugin=plugin)
    made.send(AppendPlacedAudio(audio=counting(0, 2400), start_sample=0))
    made.client.broken = True
    made.lose()
    made.clock.advance(3)
    made.resume()
    assert made.client.last(SessionResumed).next_sample == 2400
    made.send(AppendPlacedAudio(audio=counting(1200, 2400), start_sample=1200))
    pcm = b"".join(item.frame.pcm for item in plugin.of(Audio))
    assert pcm == counting(0, 3600)


@pytest.mark.parametrize("attached", [False, True])
def test_an_interruption_takes_back_what_got_lost(attached: bool) -> None:
    made = call()
    answer(made, whole=True)
    made.clock.advance(0.5)
    before = len(heard(made))
    made.client.broken = True
    made.clock.advance(2)
    if not attached:
        made.lose()
        # The connection is gone, and the audio before it has told that the person speaks.
        made.session.offer(BargeIn())
        made.resume()
    else:
        # The new connection reads nothing yet, and says first of all that the person speaks.
        made.client.broken = False
        ticket = made.manager.claim(
            made.session.id, made.client.token, made.session.owner, made.client.received
        )
        earlier = made.client
        connection = type(earlier)(made.session, earlier)
        connection.wire.resumed(earlier.written)
        connection.reading = False
        made.client = connection
        ticket.use(connection)
        made.send(BargeIn())
        connection.reading = True
        connection.read()
    made.clock.advance(10)
    assert len(heard(made)) == before
    assert made.client.last(ResponseDone).response.status in ("cancelled", "completed")
    assert made.client.of(ResyncRequired) == []


def test_time_that_the_client_did_not_hear_in_is_not_counted_as_heard() -> None:
    made = call()
    made.client.broken = True
    answer(made, seconds=2.0, whole=True)
    made.lose()
    made.clock.advance(10)
    made.resume()
    assert made.machine.speaking.playback.lead_s(made.clock.now()) == pytest.approx(2.0, abs=0.05)


# What is missing


def small(held_bytes: int = 40_000) -> SessionSettings:
    return SessionSettings(output_buffer_bytes=held_bytes, send_lead_ms=0, output_events=64)


def test_sound_that_did_not_fit_is_missing_and_that_is_said() -> None:
    made = call(small(80_000))
    answer(made, seconds=0.3, whole=True)
    made.client.broken = True
    for _ in range(8):
        made.clock.advance(1)
        answer(made, seconds=0.3, whole=True)
    first = len(made.client.of(AudioDelta))
    made.lose()
    made.resume()
    (resync,) = made.client.of(ResyncRequired)
    assert resync.reason == "sound_gap"
    # Everything else follows.
    assert len(made.client.of(ResponseDone)) == 9
    assert len(made.client.of(AudioTranscriptDelta)) == 9
    assert len(heard(made)) < 9 * 14_400
    # The next sound of an item begins where the snapshot says: in front of it, some may be missing.
    follows_ms: dict[str, int] = {}
    for delta in made.client.of(AudioDelta)[first:]:
        follows_ms[delta.item_id] = follows_ms.get(delta.item_id, 0) + len(delta.delta) // 48
    positions = {position.item_id: position.sent_ms for position in resync.snapshot.playback}
    assert len(positions) == 9
    for item_id, sent_ms in positions.items():
        assert sent_ms + follows_ms.get(item_id, 0) == 300
    assert set(positions.values()) >= {0, 300}


def test_what_is_lost_for_good_is_told_as_the_state_of_things_and_the_call_goes_on() -> None:
    made = call(small())
    made.client.broken = True
    for _ in range(200):
        made.send(ClearAudio())
    answer(made, seconds=0.1, whole=True)
    made.lose()
    made.resume()
    (resync,) = made.client.of(ResyncRequired)
    assert resync.reason == "journal_gap"
    assert resync.snapshot.server_event_seq == made.client.written
    assert [item.id for item in resync.snapshot.items] == [
        item.id for item in made.machine.history.items()
    ]
    assert resync.snapshot.active_response_id is None
    assert made.client.of(AudioCleared) == []
    made.send(ClearAudio())
    assert made.client.last(AudioCleared)
    assert made.client.ended is None


def test_what_goes_while_a_slow_reader_catches_up_is_told_too() -> None:
    made = call(small(80_000))
    made.client.broken = True
    for _ in range(3):
        answer(made, seconds=0.3, whole=True)
        made.clock.advance(1)
    made.lose()
    connection = FakeConnection(made.session)
    token, owner = made.client.token, made.session.owner
    ticket = made.manager.claim(made.session.id, token, owner, made.client.received)
    connection.reading = False
    ticket.use(connection)
    told = [delivery.event for delivery in made.session.pull(1).deliveries]
    made.client = connection
    assert isinstance(told[0], SessionResumed)
    assert not any(isinstance(event, ResyncRequired) for event in told)
    answer(made, seconds=0.5)
    buffer, journal = made.machine.speaking.buffer, made.session.journal
    assert journal is not None
    assert journal.held_bytes + buffer.held_bytes <= 80_000
    following = [delivery.event for delivery in made.session.pull(1 << 20).deliveries]
    assert isinstance(following[0], ResyncRequired)


# Small things


@pytest.mark.parametrize(
    ("name", "size", "rate", "seconds"),
    [
        ("pcm16", 48_000, 24_000, 1.0),
        ("pcm_f32le", 64_000, 16_000, 1.0),
        ("g711_ulaw", 4_000, 8_000, 0.5),
        ("opus", 0, 48_000, 0.0),
    ],
)
def test_how_long_sound_lasts(name: str, size: int, rate: int, seconds: float) -> None:
    sound = FormattedAudioDelta(
        response_id="r",
        item_id="i",
        output_index=0,
        content_index=0,
        delta=bytes(size),
        format=name,
        sample_rate_hz=rate,
    )
    assert _seconds(sound) == seconds
