"""Our own client over WebRTC: the same calls, and the server plays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from duologue.app import App, running_app
from duologue.clients import ClipDevice, DuplexClient, LineState
from duologue.engines.runners.scripted import tone_hz
from duologue.gateway.webrtc.settings import WebRtcSettings
from duologue.protocol.events import ErrorEvent
from duologue.settings import ModelSettings, Settings
from tests.conformance.webrtc_caller import loopback
from tests.fakes.small_gateway import CALLING_TURNS, small_settings
from tests.fakes.talking_gateway import LONG_LINE, SHORT_LINE, speech, talking_settings
from tests.patience import PATIENCE_S

__all__ = ["loopback"]

pytestmark = [pytest.mark.usefixtures("loopback")]


def local(settings: Settings) -> Settings:
    door = settings.gateway.model_copy(update={"webrtc": WebRtcSettings(bind_address="127.0.0.1")})
    return settings.model_copy(update={"gateway": door})


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[App]:
    async with running_app(local(talking_settings(tmp_path, LONG_LINE, SHORT_LINE))) as app:
        yield app
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0


async def test_a_caller_speaks_is_answered_interrupts_and_is_answered_again(gateway: App) -> None:
    microphone = ClipDevice()
    call = DuplexClient.connect(gateway.url, transport="webrtc", device=microphone)
    async with call:
        events, answers = call.events(), call.responses()
        microphone.say(speech(500))
        first = await anext(answers)
        await call.wait_until(lambda: first.audio_bytes > 48 * 500)
        microphone.say(speech(700))
        assert (await first.finished()).status == "cancelled"
        second = await (await anext(answers)).finished()
        assert (second.status, second.text) == ("completed", SHORT_LINE)
        await call.wait_until_quiet()
        states = {line.item_id: line.state for line in call.transcript}
        assert states[first.item_ids[0]] is LineState.CUT
        assert states[second.item_ids[0]] is LineState.DONE
    assert [event async for event in events if isinstance(event, ErrorEvent)] == []
    heard = np.frombuffer(second.audio, np.int16)
    spectrum = np.abs(np.fft.rfft(heard * np.hanning(len(heard)), 1 << 18))
    assert np.argmax(spectrum) * 24_000 / (1 << 18) == pytest.approx(tone_hz(SHORT_LINE), abs=10)
    assert len(heard) / 24 == pytest.approx(40 * len(SHORT_LINE), abs=400)


async def test_an_interruption_by_hand_silences_the_track(gateway: App) -> None:
    async with DuplexClient.connect(gateway.url, transport="webrtc") as call:
        events = call.events()
        await call.say_text("Hello?")
        await call.wait_until(lambda: call.playback.speaking is not None)
        await call.interrupt()
        await call.wait_until_quiet()
        answer = await call.ask("And now?")
        assert (answer.status, answer.text) == ("completed", SHORT_LINE)
    assert [event async for event in events if isinstance(event, ErrorEvent)] == []


async def test_functions_are_called_over_webrtc_too() -> None:
    model = ModelSettings(name="caller", plugin="scripted", options={"turns": CALLING_TURNS})
    settings = local(small_settings().model_copy(update={"models": (model,)}))

    def weather(city: str) -> str:
        return f"sunny in {city}"

    async with running_app(settings) as app:
        async with DuplexClient.connect(app.url, transport="webrtc", tools=[weather]) as call:
            answer = await call.ask("What is it like?")
        await app.sessions.wait_empty(PATIENCE_S)
    assert answer.text == "It is sunny in Nice."
    assert answer.audio_bytes > 24_000
