"""Calls over WebRTC, held by a plain aiortc peer: real ICE, DTLS and SRTP over the loopback."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter

import aiohttp
import numpy as np
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection
from numpy.typing import NDArray

from duologue.app import App, running_app
from duologue.engines.runners.scripted import tone_hz
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.webrtc.settings import WebRtcSettings
from duologue.settings import ModelSettings, Settings
from tests.conformance.webrtc_caller import (
    RATE_HZ,
    WebRtcCaller,
    loopback,
    offer_of,
    webrtc_call,
)
from tests.fakes.small_gateway import CALLING_TURNS, small_settings
from tests.fakes.talking_gateway import LONG_LINE, SHORT_LINE, speech, talking_settings
from tests.patience import PATIENCE_S

__all__ = ["loopback"]

pytestmark = pytest.mark.usefixtures("loopback")

KEY = "sesame of the tests"
LOUD = 1000
ANSWER_HZ = tone_hz(LONG_LINE)


def local(settings: Settings, **gateway: object) -> Settings:
    """Keep the server on this machine."""
    changes = {"webrtc": WebRtcSettings(bind_address="127.0.0.1"), **gateway}
    return settings.model_copy(update={"gateway": settings.gateway.model_copy(update=changes)})


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with running_app(local(talking_settings(tmp_path, LONG_LINE))) as app:
        yield app
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0


def base(app: App) -> str:
    return f"http://127.0.0.1:{app.url.rpartition(':')[2]}/v1"


def loudest_hz(sound: NDArray[np.int16]) -> float:
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound)), 8 * RATE_HZ))
    return float(np.argmax(spectrum)) / 8


def is_loud(frame: NDArray[np.int16]) -> bool:
    return int(np.abs(frame.astype(int)).max()) > LOUD


async def ask(caller: WebRtcCaller) -> None:
    """Speak, and wait until the answer sounds."""
    assert caller.microphone is not None
    caller.microphone.say(speech(1000))
    await caller.event("output_audio_buffer.started")
    await caller.until(lambda: is_loud(caller.heard[-1]))


async def test_a_call_from_offer_to_hang_up(app: App) -> None:
    async with webrtc_call(base(app)) as caller:
        assert caller.location.startswith("/v1/realtime/calls/rtc_")
        created = await caller.event("session.created")
        assert created["session"]["audio"]["output"]["format"] == {
            "type": "audio/pcm",
            "rate": 24000,
        }
        await ask(caller)
        start = len(caller.heard)
        await caller.hears(25)
        assert loudest_hz(caller.sound(start)) == pytest.approx(ANSWER_HZ, abs=10)
        # A busy machine may cost a frame, and time goes on all the same.
        assert set(np.diff(caller.positions) % 960) == {0}
        assert caller.of("response.output_audio.delta") == []
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"{base(app)[:-3]}{caller.location}/hangup") as response,
        ):
            assert response.status == 200
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0


async def test_must_have_34_the_library_is_warm_and_the_session_confirmed(app: App) -> None:
    """One stock client waits five seconds for it after the channel's opening."""
    assert "aiortc" in sys.modules
    async with webrtc_call(base(app)) as caller:
        caller.send("session.update", session={"type": "realtime", "instructions": "Be kind."})
        await caller.event("session.updated")


async def test_an_interruption_empties_the_track_and_history_has_what_was_heard(app: App) -> None:
    async with webrtc_call(base(app)) as caller:
        await ask(caller)
        await caller.hears(60)
        assert caller.microphone is not None
        caller.microphone.say(speech(1200))
        cut = await caller.event("conversation.item.truncated")
        heard = sum(map(is_loud, caller.heard))
        await caller.event("output_audio_buffer.cleared")
        await caller.hears(20)
        after = sum(map(is_loud, caller.heard)) - heard
        # What the network and the listener's own buffer (five packets) held is all that comes.
        assert after <= 7
        assert abs(cut["audio_end_ms"] - 20 * (heard + after)) <= 60
        done = await caller.event("response.done")
        assert done["response"]["status"] == "cancelled"
        assert done["response"]["status_details"]["reason"] == "turn_detected"


async def test_clearing_the_output_as_one_stock_client_does_it(app: App) -> None:
    async with webrtc_call(base(app)) as caller:
        await ask(caller)
        caller.send("response.cancel")
        caller.send("output_audio_buffer.clear")
        await caller.event("output_audio_buffer.cleared")
        await caller.hears(10)
        assert not is_loud(caller.heard[-1])
        assert caller.of("error") == []


async def test_text_is_answered_aloud_and_a_cut_ahead_is_played_up_to_there(app: App) -> None:
    async with webrtc_call(base(app)) as caller:
        await caller.event("session.created")
        content = [{"type": "input_text", "text": "hello"}]
        caller.send(
            "conversation.item.create",
            item={"type": "message", "role": "user", "content": content},
        )
        caller.send("response.create")
        await caller.event("output_audio_buffer.started")
        item = (await caller.event("response.output_item.added"))["item"]
        caller.send(
            "conversation.item.truncate", item_id=item["id"], content_index=0, audio_end_ms=700
        )
        await caller.event("conversation.item.truncated")
        by_then = sum(map(is_loud, caller.heard))
        await caller.event("output_audio_buffer.stopped")
        await caller.hears(10)
        # A busy machine may learn of the cut when more was played; then that is all that comes.
        assert 33 <= sum(map(is_loud, caller.heard)) <= max(37, by_then + 7)


async def test_a_function_is_called_over_the_data_channel() -> None:
    model = ModelSettings(name="caller", plugin="scripted", options={"turns": CALLING_TURNS})
    async with running_app(local(small_settings().model_copy(update={"models": (model,)}))) as app:
        async with webrtc_call(base(app)) as caller:
            await caller.event("session.created")
            tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
            caller.send("session.update", session={"type": "realtime", "tools": [tool]})
            await caller.event("session.updated")
            caller.send("response.create")
            call = await caller.event("response.function_call_arguments.done")
            await caller.event("response.done")
            output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sun"}
            caller.send("conversation.item.create", item=output)
            caller.send("response.create")
            await caller.event("output_audio_buffer.started")
            await caller.until(lambda: any(map(is_loud, caller.heard)))
            said = await caller.event("response.output_audio_transcript.done")
            assert said["transcript"] == "It is sun."
            assert caller.of("error") == []
        await app.sessions.wait_empty(PATIENCE_S)


async def test_the_session_of_the_form_is_the_calls(app: App) -> None:
    session = {"type": "realtime", "model": "scripted", "instructions": "Be kind."}
    async with webrtc_call(base(app), session=session) as caller:
        created = await caller.event("session.created")
        assert created["session"]["instructions"] == "Be kind."


@pytest.mark.parametrize("codec", ["pcmu", "pcma"])
async def test_c31_c71_a_peer_without_opus_is_heard_and_hears(app: App, codec: str) -> None:
    async with webrtc_call(base(app), codec=codec) as caller:
        await ask(caller)
        start = len(caller.heard)
        await caller.hears(25)
        sound = caller.sound(start)
        spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound)), 64_000))
        assert float(np.argmax(spectrum)) / 8 == pytest.approx(ANSWER_HZ, abs=10)


async def test_c71_a_call_without_audio_is_held_in_messages(app: App) -> None:
    async with webrtc_call(base(app), audio=False) as caller:
        await caller.event("session.created")
        caller.send("response.create")
        await caller.event("response.output_audio.delta")
        assert caller.heard == []


async def test_one_looks_on_from_a_websocket(app: App) -> None:
    async with webrtc_call(base(app)) as caller, aiohttp.ClientSession() as http:
        await caller.event("session.created")
        call_id = caller.location.rpartition("/")[2]
        async with http.ws_connect(f"{base(app)}/realtime?call_id={call_id}") as socket:
            created = await socket.receive_json()
            assert created["type"] == "session.created"
            await socket.send_json(
                {"type": "session.update", "session": {"type": "realtime", "instructions": "New."}}
            )
            assert (await socket.receive_json())["type"] == "session.updated"
            updated = await caller.event("session.updated")
            assert updated["session"]["instructions"] == "New."
            await socket.send_str("nonsense")
            assert (await socket.receive_json())["error"]["code"] == "invalid_json"
        await caller.hears(5)
        assert caller.of("error") == []
        async with http.ws_connect(f"{base(app)}/realtime?call_id={call_id}") as socket:
            await socket.receive_json()
            app.sessions.close_all("session_expired")
            async with asyncio.timeout(PATIENCE_S):
                while (await socket.receive()).type is not aiohttp.WSMsgType.CLOSE:
                    pass
            assert socket.close_code == 1001


async def test_nobody_looks_on_at_a_call_that_is_not_there(app: App) -> None:
    async with aiohttp.ClientSession() as http:
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await http.ws_connect(f"{base(app)}/realtime?call_id=rtc_nothing")
        assert caught.value.status == 404


async def test_c71_an_offer_that_comes_again_replaces_the_call_that_it_opened(app: App) -> None:
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    connection.createDataChannel("oai-events")
    offer = await offer_of(connection)
    headers = {"Content-Type": "application/sdp"}
    locations, took_s = [], []
    async with aiohttp.ClientSession() as http:
        for _ in range(3):
            url = f"{base(app)}/realtime/calls"
            asked_at = perf_counter()
            async with http.post(url, data=offer, headers=headers) as response:
                took_s.append(perf_counter() - asked_at)
                assert response.status == 201
                locations.append(response.headers["Location"])
        # Whole, candidates and all; a busy machine may hold up one or the other.
        assert min(took_s) < 1
        assert len(app.sessions) == 1
        statuses = []
        for location in locations:
            async with http.post(f"{base(app)[:-3]}{location}/hangup") as response:
                statuses.append(response.status)
    assert len(set(locations)) == 3
    assert statuses[-1] == 200
    await connection.close()


async def test_a_client_secret_opens_a_call_with_its_session_and_strangers_find_none(
    tmp_path: Path,
) -> None:
    settings = talking_settings(tmp_path, SHORT_LINE)
    keys = GatewaySettings(api_keys=(KEY, "another key"), port=0, drain_timeout_s=0).api_keys
    async with (
        running_app(local(settings, api_keys=keys)) as app,
        aiohttp.ClientSession() as http,
    ):
        body = {"session": {"type": "realtime", "instructions": "Bound."}}
        url = f"{base(app)}/realtime/client_secrets"
        async with http.post(url, json=body, headers={"Authorization": f"Bearer {KEY}"}) as page:
            secret = (await page.json())["value"]
        async with webrtc_call(base(app), key=secret) as caller:
            created = await caller.event("session.created")
            assert created["session"]["instructions"] == "Bound."
            hang_up = f"{base(app)[:-3]}{caller.location}/hangup"
            stranger = {"Authorization": "Bearer another key"}
            async with http.post(hang_up, headers=stranger) as response:
                assert response.status == 404
            async with http.post(hang_up) as response:
                assert response.status == 401
            async with http.post(hang_up, headers={"Authorization": f"Bearer {KEY}"}) as response:
                assert response.status == 200
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0
        async with http.post(f"{base(app)}/realtime/calls", data="v=0") as response:
            assert response.status == 401


async def test_what_only_phone_calls_can_do_is_refused(app: App) -> None:
    async with aiohttp.ClientSession() as http:
        for action in ("accept", "reject", "refer"):
            async with http.post(f"{base(app)}/realtime/calls/rtc_1/{action}") as response:
                assert response.status == 400
                assert "SIP" in json.loads(await response.text())["error"]["message"]
