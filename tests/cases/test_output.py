"""C45 and C50: clients that stop reading, and as many calls as there may be."""

from __future__ import annotations

from itertools import pairwise

import pytest

from duologue.core.errors import CapacityError
from duologue.engines.payloads import AudioChunk
from duologue.protocol.commands import CommitAudio, CreateResponse
from duologue.protocol.errors import ErrorCode
from duologue.protocol.response_events import AudioDelta, ResponseDone
from duologue.sessions.settings import SessionSettings
from tests.cases.talk import RATE_HZ, Talk, join, pcm, speech
from tests.fakes.call import FakeConnection
from tests.fakes.plugin import STAGE

SETTINGS = SessionSettings(
    output_buffer_ms=20_000, output_buffer_bytes=2_000_000, stall_limit_s=15, max_sessions=30
)


def generate(talk: Talk, seconds: int) -> None:
    """Make speech ten times as fast as it is played, as long as it is wanted."""
    for _ in range(seconds):
        request = talk.stage().request
        if request.id in talk.engine.cancelled:
            return
        talk.engine.output(request.id, AudioChunk(pcm(1000), RATE_HZ))
        talk.clock.advance(0.1)
        buffer = talk.machine.speaking.buffer
        assert buffer.held_bytes <= SETTINGS.output_buffer_bytes
        talk.check_accounts()


def test_c45_an_answer_that_nobody_takes_fails_and_the_call_goes_on() -> None:
    talk = Talk(settings=SETTINGS)
    talk.send(CreateResponse())
    generate(talk, 1)
    talk.client.reading = False
    generate(talk, 60)
    assert talk.machine.ended is None
    assert talk.engine.cancelled != []
    talk.client.reading = True
    talk.client.read()
    assert talk.done() == [("failed", "output_overflow")]
    details = talk.client.last(ResponseDone).response.status_details
    assert details is not None
    assert details.error is not None
    assert details.error.code == "output_overflow"
    # What did not reach the person is no part of the conversation.
    item = talk.machine.history.get(talk.machine.history.last_id or "")
    assert item.spoken is not None
    assert item.spoken.cut_sample is not None
    assert item.spoken.cut_sample <= 3000 * 24
    talk.engine.acknowledge_cancel(talk.stage().request.id)
    talk.probe()
    talk.close()


def test_c45_credit_keeps_an_answer_from_overflowing() -> None:
    talk = Talk(settings=SETTINGS, credit=4000)
    talk.send(CreateResponse())
    talk.client.reading = False
    stage = talk.stage()
    made = 0
    for _ in range(100):
        talk.clock.advance(0.1)
        if stage.credit is not None and stage.credit > 0:
            stage.credit -= 1000
            made += 1
            talk.engine.output(stage.request.id, AudioChunk(pcm(1000), RATE_HZ))
    assert made == 4
    talk.client.reading = True
    talk.client.read()
    assert stage.credit == 3000  # as much as is sent ahead of playback
    talk.finish()
    talk.play_to_the_end()
    assert talk.done() == [("completed", None)]
    talk.close()


def test_c45_a_client_that_takes_nothing_is_let_go_and_leaves_nothing_behind() -> None:
    talk = Talk(settings=SETTINGS)
    talk.send(CreateResponse())
    talk.client.reading = False
    generate(talk, 5)
    talk.clock.advance(15)
    assert talk.client.ended == ErrorCode.CLIENT_TOO_SLOW
    assert len(talk.manager) == 0
    assert all(fake.cancelled for fake in talk.engine.running.values())
    talk.check_accounts()
    assert not talk.machine.speaking.buffer.has_speech()
    talk.client.reading = True
    talk.client.read()
    assert talk.client.wire.open_responses == []
    assert talk.machine.speaking.buffer.held_bytes == 0


def test_c45_clients_that_read_hear_nothing_of_those_that_do_not() -> None:
    """Twenty stop reading a second into their answers of a minute, beside five that read on."""
    talk = Talk(settings=SETTINGS)
    slow = [join(talk) for _ in range(20)]
    good = [talk.client, *(join(talk) for _ in range(4))]
    owners: dict[str, FakeConnection] = {}
    for client in (*slow, *good):
        client.session.offer(CreateResponse())
        owners[talk.engine.of(STAGE)[-1].request.id] = client
    heard_at: dict[FakeConnection, list[float]] = {client: [] for client in good}
    for tick in range(600):
        if tick == 10:
            for client in slow:
                client.reading = False
        for request_id, client in owners.items():
            if request_id in talk.engine.cancelled:
                continue
            # Theirs is made ten times as fast as it is played, as long as it is wanted.
            size_ms = 100 if client in heard_at else 1000
            if size_ms * tick < 60_000:
                before = len(client.of(AudioDelta))
                talk.engine.output(request_id, AudioChunk(pcm(size_ms), RATE_HZ))
                more = len(client.of(AudioDelta)) - before
                heard_at.get(client, []).extend([talk.clock.now()] * more)
        for client in slow:
            held = client.session.machine.speaking.buffer.held_bytes
            assert held <= SETTINGS.output_buffer_bytes
        talk.clock.advance(0.1)
    for times in heard_at.values():
        assert max(later - earlier for earlier, later in pairwise(times)) <= 0.11
    for request_id, client in owners.items():
        if client in heard_at:
            talk.engine.complete(request_id)
    talk.play_to_the_end()
    for client in good:
        assert client.last(ResponseDone).response.status == "completed"
        assert sum(len(delta.delta) for delta in client.of(AudioDelta)) == len(pcm(60_000))
    # Those that took nothing for too long are gone, and nothing of them is left.
    assert {client.ended for client in slow} == {ErrorCode.CLIENT_TOO_SLOW}
    assert len(talk.manager) == len(good)
    for client in good[1:]:
        client.session.close("closed")
    talk.close()


def test_c50_a_full_server_answers_each_as_soon_as_one_alone() -> None:
    """And refuses the one too many at once, without a step of the clock."""
    most = 20
    alone = first_sounds(1)
    together = first_sounds(most)
    assert len(together) == most
    assert max(together) <= 2 * alone[0]


def first_sounds(calls: int) -> list[float]:
    """Time from each commit to its first sound, where a turn ends in so many calls at once."""
    talk = Talk(settings=SessionSettings(max_sessions=calls))
    callers = [talk.client, *(join(talk) for _ in range(calls - 1))]
    took: list[float] = []
    for caller in callers:
        caller.session.offer(speech(600))
        caller.session.offer(CommitAudio())
        caller.session.offer(CreateResponse())
    began = talk.clock.now()
    with pytest.raises(CapacityError):
        join(talk)
    assert talk.clock.now() == began
    # The model makes a tenth of a second for everybody, ten times a second.
    for _ in range(20):
        talk.clock.advance(0.1)
        for fake in talk.engine.of(STAGE):
            talk.engine.output(fake.request.id, AudioChunk(pcm(100), RATE_HZ))
        took += [talk.clock.now() - began] * (
            sum(bool(caller.of(AudioDelta)) for caller in callers) - len(took)
        )
    for caller in callers:
        assert sum(len(delta.delta) for delta in caller.of(AudioDelta)) >= len(pcm(1900))
    return took


def test_c50_the_one_too_many_is_refused_and_the_others_go_on() -> None:
    talk = Talk(settings=SessionSettings(max_sessions=2))
    other = join(talk)
    with pytest.raises(CapacityError):
        join(talk)
    talk.probe()
    other.session.close("closed")
    join(talk).session.close("closed")
    talk.close()
