"""C59: a call that has grown too old ends, and its conversation goes on in a new session."""

from __future__ import annotations

import pytest

from duologue.app import running_app
from duologue.clients import DuplexClient, Reconnected
from duologue.core.errors import CapacityError, ClientError
from duologue.duplex_plugins.contract import ResponseRequested
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.protocol.commands import CreateItem, CreateResponse
from duologue.protocol.duplex.commands import ResumeSession
from duologue.protocol.duplex.events import SessionExpired
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.events import ErrorEvent, ResumableSessionCreated
from duologue.protocol.items import InputText, MessageItem, OutputAudio
from duologue.protocol.response_events import ResponseCreated
from duologue.protocol.session_config import FunctionTool
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioPatch,
    SessionPatch,
    TurnDetectionPatch,
)
from duologue.sessions.owners import ANYBODY, Owner
from duologue.sessions.settings import SessionSettings
from tests.cases.talk import BY_HAND, DETECTING, READS
from tests.fakes.call import FakeCall, FakeConnection
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin
from tests.fakes.small_gateway import small_settings

AGED = SessionSettings(max_duration_s=120, expiry_warning_s=60, expiry_grace_s=30)


class AgedCall(FakeCall):
    """A call, and what its model was asked."""

    def __init__(self, engine: FakeEngine, settings: SessionSettings, patch: DuplexPatch) -> None:
        self.plugin = FakePlugin(READS)
        super().__init__(self.plugin, engine, settings, patch=patch, resumable=True)


def aged_call(settings: SessionSettings = AGED, pipelines: tuple[str, ...] = BY_HAND) -> AgedCall:
    detection = TurnDetectionPatch(type="server_vad") if "vad" in pipelines else None
    patch = DuplexPatch(
        instructions="Be kind.",
        tools=(FunctionTool(name="look"),),
        audio=AudioPatch(input=AudioInputPatch(turn_detection=detection)),
    )
    return AgedCall(FakeEngine(pipelines=pipelines), settings, patch)


def ask(call: FakeCall, text: str, answer: str) -> None:
    call.send(CreateItem(item=MessageItem(role="user", content=(InputText(text=text),))))
    call.send(CreateResponse())
    stage = call.engine.of(STAGE)[-1]
    call.engine.output(stage.request.id, TextDelta(answer))
    call.engine.output(stage.request.id, AudioChunk(b"\x10\x00" * 24_000, 24_000))
    call.engine.complete(stage.request.id)
    call.clock.advance(3)


def come_back(call: FakeCall, token: str | None = None, owner: Owner = ANYBODY) -> FakeConnection:
    """Go on with the conversation of the call's session, which is over."""
    ticket = call.manager.claim(call.session.id, token or call.client.token, owner, 0)
    session = ticket.begin()
    connection = FakeConnection(session)
    ticket.use(connection)
    return connection


def refusal(call: FakeCall, token: str | None = None, owner: Owner = ANYBODY) -> str:
    with pytest.raises(ClientError) as refused:
        come_back(call, token, owner)
    return refused.value.code


def test_c59_the_conversation_and_the_configuration_go_on() -> None:
    call = aged_call()
    ask(call, "who are you?", "Nobody.")
    ask(call, "really?", "Really.")
    call.clock.advance(130)
    assert call.client.ended == "session_expired"
    assert call.client.last(SessionExpired).rollover == "new_session"
    before, items = call.machine, call.machine.history.items()
    heir = come_back(call)
    created = heir.last(ResumableSessionCreated)
    assert created.continues == call.session.id
    assert created.session.id != call.session.id
    assert created.session.instructions == "Be kind."
    session = call.manager.get(created.session.id)
    assert session is not None
    assert session.machine.config == before.config
    assert [item.id for item in session.machine.history.items()] == [item.id for item in items]
    assert len(call.manager) == 1
    # The next answer knows all of it.
    session.offer(CreateResponse())
    asked = call.plugin.of(ResponseRequested)[-1]
    assert [view.text for view in asked.conversation] == [
        "who are you?",
        "Nobody.",
        "really?",
        "Really.",
    ]
    assert heir.of(ErrorEvent) == []


def test_c59_of_an_answer_that_was_cut_off_only_what_was_heard_goes_on() -> None:
    call = aged_call(AGED.model_copy(update={"response_timeout_s": 100.0}))
    call.clock.advance(119)
    call.send(CreateItem(item=MessageItem(role="user", content=(InputText(text="all?"),))))
    call.send(CreateResponse())
    stage = call.engine.of(STAGE)[-1]
    words = "one two three four five six seven eight nine ten"
    call.engine.output(stage.request.id, TextDelta(words))
    for _ in range(3):
        call.engine.output(stage.request.id, AudioChunk(b"\x10\x00" * 24_000 * 15, 24_000))
        call.clock.advance(11)
    assert call.client.ended == "session_expired"
    come_back(call)
    (session,) = (call.manager.get(look.id) for look in call.manager.look())
    assert session is not None
    last = session.machine.history.items()[-1]
    assert isinstance(last, MessageItem)
    (part,) = last.content
    assert isinstance(part, OutputAudio)
    assert part.transcript
    assert words.startswith(part.transcript)
    assert part.transcript != words


def test_c59_who_is_speaking_at_the_limit_finishes_and_is_answered_afterwards() -> None:
    call = aged_call(pipelines=DETECTING)
    call.clock.advance(119.5)
    call.say(40)
    assert call.client.ended is None, "nobody is cut off in mid-sentence"
    call.hush(40)
    call.transcribe("a question")
    call.clock.advance(1)
    assert call.client.ended == "session_expired"
    assert call.client.of(ResponseCreated) == []
    heir = come_back(call)
    call.clock.advance(0.1)
    assert len(heir.of(ResponseCreated)) == 1
    asked = call.plugin.of(ResponseRequested)[-1]
    assert [view.text for view in asked.conversation] == ["a question"]


def test_a_conversation_is_gone_on_with_once_and_by_whoever_has_its_token() -> None:
    call = aged_call()
    call.clock.advance(121)
    token = call.client.token
    assert refusal(call, "wrong") == "invalid_resume_token"
    assert refusal(call, token, Owner("another key")) == "api_key_not_allowed"
    late = call.manager.claim(call.session.id, token, ANYBODY, 0)
    come_back(call)
    assert refusal(call) == "session_resume_conflict"
    with pytest.raises(ClientError, match="another connection goes on"):
        late.begin()
    assert len(call.manager) == 1


def test_a_conversation_is_kept_for_a_while_only() -> None:
    call = aged_call()
    call.clock.advance(121)
    call.clock.advance(AGED.disconnect_grace_s + 1)
    assert refusal(call) == "session_resume_conflict"


def test_none_is_kept_where_none_is_wanted() -> None:
    call = aged_call(AGED.model_copy(update={"rollover_bytes": 0}))
    call.clock.advance(121)
    assert refusal(call) == "session_resume_conflict"


def test_only_age_rolls_over() -> None:
    call = aged_call()
    call.session.close("closed")
    assert refusal(call) == "session_resume_conflict"


def test_a_full_server_rolls_nothing_over_and_the_conversation_waits() -> None:
    call = aged_call(AGED.model_copy(update={"max_sessions": 1}))
    call.clock.advance(121)
    other = call.manager.open(None, patch=SessionPatch())
    with pytest.raises(CapacityError):
        come_back(call)
    other.close("closed")
    come_back(call)


async def test_c59_our_own_client_goes_on_without_its_program_doing_anything() -> None:
    aged = SessionSettings(max_duration_s=1.5, expiry_warning_s=1.0, expiry_grace_s=5.0)
    async with running_app(small_settings(sessions=aged)) as app:
        call = DuplexClient.connect(app.url, dialect="duplex", instructions="Be kind.")
        async with call:
            first = call.session.id
            events = call.events()
            item = MessageItem(id="item_mine", role="user", content=(InputText(text="Hello?"),))
            call.send(CreateItem(item=item))
            back = await anext(event async for event in events if isinstance(event, Reconnected))
            assert back.rolled_over_from == first
            assert call.session.id != first
            assert call.session.instructions == "Be kind."
            assert await call.retrieve("item_mine") == item
            answer = await call.ask("And now?")
            assert answer.status == "completed"
            assert len(app.sessions) == 1


def test_a_resume_names_what_was_claimed() -> None:
    call = aged_call()
    ticket = call.manager.claim(call.session.id, call.client.token, ANYBODY, 0)
    assert (ticket.session_id, ticket.is_duplex) == (call.session.id, True)
    assert ResumeSession(session_id=ticket.session_id, resume_token="t").session_id
