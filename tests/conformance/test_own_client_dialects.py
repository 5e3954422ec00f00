"""Our own client in both dialects, written both ways, over a socket and in process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from duologue.app import App, running_app
from duologue.clients import ClipDevice, CommandRefused, DuplexClient, LineState
from duologue.clients.session_patches import session_patch
from duologue.protocol.client_dialects import ClientFamily
from duologue.protocol.dialect import Encoding
from duologue.protocol.duplex.events import (
    InputAccepted,
    OverlapDecided,
    PlaybackAcknowledged,
    SessionClosed,
)
from duologue.protocol.events import AudioCleared, ErrorEvent, ItemTruncated
from tests.fakes.talking_gateway import LONG_LINE, SHORT_LINE, speech, talking_settings
from tests.patience import PATIENCE_S


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[App]:
    async with running_app(talking_settings(tmp_path, LONG_LINE, SHORT_LINE)) as app:
        yield app
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
@pytest.mark.parametrize("dialect", ["realtime", "duplex"])
async def test_a_caller_asks_interrupts_and_closes(
    gateway: App, dialect: ClientFamily, encoding: Encoding
) -> None:
    microphone = ClipDevice()
    call = DuplexClient.connect(
        gateway.url, dialect=dialect, encodings=(encoding,), device=microphone, instructions="Hi."
    )
    async with call:
        events, answers = call.events(), call.responses()
        assert call.session.instructions == "Hi."
        assert (call.capabilities is not None) is (dialect == "duplex")
        microphone.say(speech(500))
        await call.wait_until(lambda: heard_ms(call) > 300)
        microphone.say(speech(900))
        assert (await (await anext(answers)).finished()).status == "cancelled"
        assert (await (await anext(answers)).finished()).status == "completed"
        await call.wait_until_quiet()
        assert LineState.CUT in {line.state for line in call.transcript}
        call.clear_audio()
        await call.wait_for(AudioCleared)
    seen = [event async for event in events]
    assert [event for event in seen if isinstance(event, ErrorEvent)] == []
    assert any(isinstance(event, ItemTruncated) for event in seen)
    kinds = {type(event) for event in seen}
    extensions = {InputAccepted, OverlapDecided, PlaybackAcknowledged}
    assert kinds & extensions == (extensions if dialect == "duplex" else set())
    if dialect == "duplex":
        assert isinstance(seen[-1], SessionClosed)
        positions = [event for event in seen if isinstance(event, InputAccepted)]
        assert positions[-1].missing_samples == 0
    assert [answer async for answer in answers] == []


def heard_ms(call: DuplexClient) -> int:
    return sum(call.playback.sounded().values()) // 24


async def test_the_conversation_holds_what_the_loudspeaker_has_played(gateway: App) -> None:
    call = DuplexClient.connect(
        gateway.url, dialect="duplex", device=ClipDevice(), playback_commit_policy="ack_only"
    )
    async with call:
        events = call.events()
        response_id = await call.say_text("Hello?")
        await call.wait_until(lambda: heard_ms(call) > 500)
        position = heard_ms(call)
        async with asyncio.timeout(PATIENCE_S):
            async for event in events:
                if isinstance(event, PlaybackAcknowledged) and event.event.played_ms >= position:
                    break
        assert event.event.response_id == response_id
        assert event.event.committed_ms == event.event.played_ms
        assert not event.event.history_committed


async def test_a_description_that_is_refused_opens_nothing(gateway: App) -> None:
    with pytest.raises(CommandRefused, match="overlap_barge_in_ms"):
        async with DuplexClient.connect(gateway.url, dialect="duplex", overlap_barge_in_ms=99_999):
            raise AssertionError("it was entered")
    with pytest.raises(CommandRefused, match="speed"):
        async with DuplexClient.connect(gateway.url, speed=9.0):
            raise AssertionError("it was entered")


async def test_a_session_of_this_process_speaks_the_dialect_in_which_it_was_opened(
    gateway: App,
) -> None:
    patch = session_patch(auto_response=False)
    session = gateway.sessions.open("scripted", patch=patch)
    async with DuplexClient.in_process(session, idle_timeout_s=600.0) as call:
        assert call.capabilities is not None
        assert call.session.extra_body.auto_response is False  # type: ignore[union-attr]
        assert call.session.idle_timeout_s == 600.0  # type: ignore[union-attr]
        assert (await call.ask("Hello?")).text == LONG_LINE
