"""The session without its connection: who may come, how long it waits, what it holds."""

from __future__ import annotations

from duologue.engines.payloads import AudioChunk
from duologue.protocol.commands import (
    CreateResponse,
    ResponseParams,
)
from duologue.protocol.duplex.commands import (
    CloseSession,
)
from duologue.protocol.duplex.events import (
    ResyncRequired,
    SessionExpired,
    SessionReplaced,
)
from duologue.protocol.events import ErrorEvent, ResumableSessionCreated
from duologue.protocol.response_events import (
    AudioDelta,
    ResponseDone,
)
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.owners import Owner
from duologue.sessions.settings import SessionSettings
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin
from tests.unit.sessions.resumption.resumption_bench import (
    answer,
    call,
    counting,
    heard,
    refusal,
)


def test_the_first_connection_is_told_how_the_next_one_comes_in() -> None:
    made = call()
    greeting = made.client.events[0]
    assert isinstance(greeting, ResumableSessionCreated)
    assert greeting.attachment_generation == 1
    assert greeting.session.capabilities.supports_session_resume  # type: ignore[union-attr]


def test_a_session_that_may_not_be_resumed_says_so_and_ends_with_its_connection() -> None:
    made = call(SessionSettings(disconnect_grace_s=0))
    created = made.client.events[0]
    assert not isinstance(created, ResumableSessionCreated)
    assert not created.session.capabilities.supports_session_resume  # type: ignore[union-attr]
    made.lose()
    assert len(made.manager) == 0


def test_nobody_comes_and_the_session_ends() -> None:
    made = call()
    made.lose()
    made.clock.advance(29.9)
    assert len(made.manager) == 1
    made.clock.advance(0.2)
    assert len(made.manager) == 0
    assert made.metrics.sessions_detached.value == 0
    assert refusal(made) == "session_resume_expired"
    made.client.gone = False
    made.client.read()
    assert made.client.last(SessionExpired).reason == "session_resume_expired"


def test_the_connection_that_is_replaced_is_told_and_can_do_nothing_more() -> None:
    made = call()
    old = made.client
    made.resume()
    assert old.ended == "stale_lease"
    assert old.last_words == [SessionReplaced(session_id=made.session.id, attachment_generation=2)]
    made.session.detach(old)
    made.clock.advance(60)
    assert len(made.manager) == 1


def test_refusals_differ_for_those_who_have_the_token_alone() -> None:
    made = call()
    assert refusal(made, "wrong") == refusal(made, session_id="sess_x") == "invalid_resume_token"
    assert refusal(made, owner=Owner("somebody else")) == "api_key_not_allowed"
    assert refusal(made, "wrong", owner=Owner("somebody else")) == "invalid_resume_token"
    made.send(CloseSession())
    assert refusal(made) == "session_resume_conflict"
    assert refusal(made, "wrong") == "invalid_resume_token"


def test_a_plain_session_is_not_resumed_by_a_duplex_message() -> None:
    made = FakeCall(FakePlugin(), patch=SessionPatch(), resumable=True)
    assert refusal(made) == "unsupported_session_resume"
    plain = FakeCall(FakePlugin())
    plain.client.deliveries.extend(made.client.deliveries)
    assert refusal(plain, "any") == "invalid_resume_token"


def test_nothing_is_asked_of_a_stage_while_nobody_listens() -> None:
    made = call(plugin=FakePlugin(credit=1000))
    made.send(CreateResponse())
    stage = made.engine.of(STAGE)[0]
    made.engine.output(stage.request.id, AudioChunk(counting(0, 4800), 24000))
    made.clock.advance(1)
    granted = stage.credit
    made.lose()
    made.engine.output(stage.request.id, AudioChunk(counting(4800, 24000), 24000))
    made.clock.advance(25)
    assert stage.credit == granted
    assert made.client.ended is None
    made.resume()
    made.clock.advance(3)
    assert stage.credit is not None
    assert granted is not None
    assert stage.credit > granted
    assert heard(made) == counting(0, 28800)


def test_no_turn_ends_while_nobody_can_speak() -> None:
    made = call()
    made.say(20)
    made.lose()
    made.clock.advance(25)
    assert made.machine.listening.turn is not None
    made.resume()
    made.clock.advance(4)
    assert made.machine.listening.turn is not None
    made.clock.advance(2)
    assert made.machine.listening.turn is None


def test_a_client_that_takes_nothing_is_let_go_and_may_come_back() -> None:
    made = call()
    made.client.reading = False
    answer(made)
    made.clock.advance(16)
    assert made.client.ended == "client_too_slow"
    assert len(made.manager) == 1
    made.resume()
    made.clock.advance(10)
    assert heard(made) == counting(0, 5 * 24000)


def test_what_is_held_is_bounded_for_a_client_that_acknowledges_nothing() -> None:
    made = call(SessionSettings(output_buffer_bytes=400_000, output_buffer_ms=4000))
    journal, buffer = made.session.journal, made.machine.speaking.buffer
    assert journal is not None
    for _ in range(20):
        answer(made, seconds=3.0, whole=True)
        for _ in range(12):
            made.clock.advance(0.25)
            assert journal.held_bytes + buffer.held_bytes <= 400_000
    assert made.client.of(ErrorEvent) == []
    assert [done.response.status for done in made.client.of(ResponseDone)] == ["completed"] * 20
    # The newest are there, which is what a client asks for that has lost its connection.
    made.client.broken = True
    answer(made, seconds=1.0, whole=True)
    made.clock.advance(2)
    made.lose()
    made.resume()
    assert made.client.of(ResyncRequired) == []


def test_a_stock_client_attaches_again_and_goes_on_with_what_comes() -> None:
    made = FakeCall(
        FakePlugin(),
        FakeEngine(pipelines=(STAGE,)),
        patch=SessionPatch(),
        resumable=True,
    )
    answer(made, seconds=6.0)
    made.lose()
    made.clock.advance(5)
    connection = type(made.client)(made.session)
    ticket = made.manager.claim(made.session.id, made.client.token, made.session.owner)
    connection.reading = False
    ticket.use(connection)
    batch = made.session.pull(1 << 20)
    greeting = batch.deliveries[0]
    assert isinstance(greeting.event, ResumableSessionCreated)
    assert greeting.seq == made.client.received + 1
    assert batch.more
    following = made.session.pull(1 << 20).deliveries
    assert following[0].seq == greeting.seq + 1
    assert any(isinstance(delivery.event, AudioDelta) for delivery in following)


def test_what_is_said_beside_the_conversation_is_sent_again_whatever_was_interrupted() -> None:
    made = call()
    made.client.broken = True
    made.send(CreateResponse(response=ResponseParams(conversation="none")))
    beside = made.engine.of(STAGE)[-1]
    made.engine.output(beside.request.id, AudioChunk(counting(0, 2400), 24000))
    made.send(CreateResponse(response=ResponseParams(interrupt=True)))
    made.resume()
    assert heard(made) == counting(0, 2400)
