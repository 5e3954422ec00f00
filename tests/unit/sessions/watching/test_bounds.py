"""How full a session's bounds are."""

from __future__ import annotations

from duologue.duplex_plugins.contract import Capabilities
from duologue.engines.payloads import AudioChunk
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import CreateItem, CreateResponse, ResponseParams
from duologue.protocol.duplex.commands import ShowFrame
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.items import InputText, MessageItem
from duologue.sessions.backlog import INPUT_BYTES, SLICE_BYTES
from duologue.sessions.settings import SessionSettings
from duologue.sessions.watching.bounds import AT_ONCE, SESSION_BYTES, SESSION_NUMBERS, fills_of
from duologue.telemetry.metrics import BOUNDS, BYTE_BOUNDS
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin

SETTINGS = SessionSettings(
    send_lead_ms=0, output_buffer_ms=4000, output_buffer_bytes=400_000, max_conversation_bytes=1000
)
SECOND = b"\x01\x00" * 24_000


def a_call(**more: object) -> FakeCall:
    return FakeCall(FakePlugin(), FakeEngine(pipelines=(STAGE,)), SETTINGS, **more)  # type: ignore[arg-type]


def held(call: FakeCall) -> dict[str, tuple[int, int]]:
    return {bound: (size, limit) for bound, size, limit in fills_of(call.session, SETTINGS)}


def test_every_bound_of_a_session_is_published_under_its_name() -> None:
    assert set(held(a_call())) == {*SESSION_BYTES, *SESSION_NUMBERS}
    assert set(SESSION_BYTES) <= set(BYTE_BOUNDS)
    assert set(SESSION_NUMBERS) <= set(BOUNDS)


def test_what_waits_for_a_client_that_does_not_read() -> None:
    call = a_call()
    call.client.reading = False
    call.send(CreateResponse(), CreateResponse(response=ResponseParams(conversation="none")))
    first, second = call.engine.of(STAGE)
    call.engine.output(first.request.id, AudioChunk(SECOND, 24_000))
    call.engine.output(second.request.id, AudioChunk(SECOND * 2, 24_000))
    now = held(call)
    assert now["output_speech"] == (2000, 4000)
    assert now["output_buffer"][0] > 3 * len(SECOND)
    assert now["output_events"][0] > 3
    assert now["responses_beside"] == (1, SETTINGS.max_out_of_band_responses)
    tuple(call.manager.note_fills())
    fill, size = call.metrics.bound_fill, call.metrics.held_bytes
    assert fill["output_speech"].value == 0.5
    assert size["output_buffer"].value == now["output_buffer"][0]
    assert fill["sessions"].value == 1 / SETTINGS.max_sessions


def test_what_a_client_has_said_and_what_it_may_be_sent_again() -> None:
    call = a_call(patch=DuplexPatch(), resumable=True)
    sent = AppendAudio(audio=bytes(4 * SLICE_BYTES))
    text = MessageItem(role="user", content=(InputText(text="x" * 250),))
    call.send(CreateItem(item=text), sent)
    now = held(call)
    assert now["conversation"] == (250, 1000)
    assert now["conversation_items"][0] == 1
    assert now["journal"][0] > 0
    waiting = now["input_backlog"][0]
    assert waiting == len(sent.audio) + INPUT_BYTES
    assert now["input_backlog_messages"][0] == 1
    call.clock.advance(1)
    assert held(call)["input_backlog"][0] == 0
    assert held(call)["input_audio"][0] > 0


def test_frames_of_a_camera_count() -> None:
    call = FakeCall(FakePlugin(Capabilities(sees=True)), patch=DuplexPatch())
    call.send(ShowFrame(data=bytes(1000)))
    (fill,) = [fill for fill in fills_of(call.session, SETTINGS) if fill.bound == "camera_frames"]
    assert (fill.held, fill.limit) == (1000, SETTINGS.frames.kept_bytes)


def test_the_fullest_session_decides_and_bytes_add_up() -> None:
    call = a_call()
    other = call.manager.open(None)
    for session, size in ((call.session, 100), (other, 700)):
        item = MessageItem(role="user", content=(InputText(text="x" * size),))
        session.offer(CreateItem(item=item))
    tuple(call.manager.note_fills())
    assert call.metrics.held_bytes["conversation"].value == 800
    assert call.metrics.bound_fill["conversation"].value == 0.7
    assert call.metrics.held_bytes["past_conversations"].value == 0
    other.close("closed")
    tuple(call.manager.note_fills())
    assert call.metrics.held_bytes["conversation"].value == 100


def test_many_sessions_are_looked_at_in_pieces() -> None:
    settings = SETTINGS.model_copy(update={"max_sessions": AT_ONCE + 1})
    call = FakeCall(FakePlugin(), settings=settings)
    sessions = [call.session, *(call.manager.open(None) for _ in range(AT_ONCE))]
    for session in sessions:
        session.offer(CreateItem(item=MessageItem(role="user", content=(InputText(text="x"),))))
    pieces = call.manager.note_fills()
    assert next(pieces, "over") is None
    assert call.metrics.held_bytes["conversation"].value == 0
    sessions[-1].close("closed")  # while somebody else has a turn
    assert next(pieces, "over") == "over"
    assert call.metrics.held_bytes["conversation"].value >= AT_ONCE


def test_what_is_kept_of_calls_that_were_too_old_counts_too() -> None:
    settings = SETTINGS.model_copy(update={"max_duration_s": 10.0, "rollover_bytes": 4096})
    engine = FakeEngine(pipelines=(STAGE,))
    call = FakeCall(FakePlugin(), engine, settings, patch=DuplexPatch(), resumable=True)
    text = MessageItem(role="user", content=(InputText(text="x" * 250),))
    call.send(CreateItem(item=text))
    call.clock.advance(11)
    tuple(call.manager.note_fills())
    held = call.metrics.held_bytes["past_conversations"].value
    assert held >= 250
    assert call.metrics.bound_fill["past_conversations"].value == held / 4096
