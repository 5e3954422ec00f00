"""The line of a page breaks in mid-answer and in mid-question, and the call goes on as it was.

Between the browser and the gateway stands a line that a test cuts. What the person says are beeps:
a hole or a repetition would make other words of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from duologue.app import App, running_app
from duologue.gateway.webrtc.settings import WebRtcSettings
from tests.browser.chromium import Page
from tests.browser.conftest import Browse
from tests.browser.test_sdk import EAR, FLAGS, said, start
from tests.browser.test_sdk import line as entry
from tests.browser.voice import silence
from tests.conformance.talking_gateway import talking_settings
from tests.fakes.breakable_line import BreakableLine, breakable_line
from tests.faults.scripted_models import LONG
from tests.patience import PATIENCE_S

Break = Callable[[BreakableLine], None]

ANSWER = f"Well, you said hello long{LONG}."
SOUND_MS = """
seen.event.filter(({ type }) => type === 'response.output_audio.delta')
  .reduce((sum, { delta }) => sum + atob(delta).length, 0) / 48
"""
ERRORS = "seen.event.filter(({ type }) => type === 'error')"
PLAYED = "call.transcript.entries.filter(({ speaker }) => speaker === 'duologue')"
FOLLOW = "call.on('reconnected', (back) => (window.back = back)) && true"


def fall_into_a_hole(line: BreakableLine) -> None:
    line.black_hole()
    asyncio.get_running_loop().call_later(1.0, line.heal)


BREAKS: dict[str, Break] = {
    "reset": BreakableLine.reset,
    "finish": BreakableLine.finish,
    "black hole": fall_into_a_hole,
}


@asynccontextmanager
async def patient(folder: Path) -> AsyncIterator[App]:
    """A gateway that waits for callers who vanish."""
    settings = talking_settings(folder)
    sessions = settings.sessions.model_copy(update={"disconnect_grace_s": 20.0})
    door = settings.gateway.model_copy(
        update={"api_keys": (), "webrtc": WebRtcSettings(bind_address="127.0.0.1")}
    )
    async with running_app(
        settings.model_copy(update={"sessions": sessions, "gateway": door})
    ) as app:
        yield app
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0


@pytest.fixture
async def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[App]:
    monkeypatch.syspath_prepend(tmp_path)
    async with patient(tmp_path) as app:
        yield app


@pytest.fixture
async def cable(app: App) -> AsyncIterator[BreakableLine]:
    async with breakable_line(int(app.url.rpartition(":")[2])) as line:
        yield line


def blank(line: BreakableLine) -> str:
    return f"http://127.0.0.1:{line.port}/sdk/duologue.d.ts"


async def begin(page: Page) -> None:
    assert await page.evaluate(start(dialect="duplex", key="")) == "websocket"
    await page.evaluate(FOLLOW)


@pytest.mark.parametrize("way", BREAKS)
async def test_in_mid_answer(browse: Browse, cable: BreakableLine, way: str) -> None:
    async with browse((silence(1.5), said("hello long"), silence(40)), url=blank(cable)) as page:
        await begin(page)
        await page.until(f"{PLAYED}.some(({{ heardCharacters }}) => heardCharacters > 8)")
        BREAKS[way](cable)
        await page.until("call.isReconnecting")
        assert await page.evaluate("call.phase") == "live"
        await page.until("window.back !== undefined")
        await page.until(entry(ANSWER, "heard"))
        # All of its sound came once, and was played once.
        played = "seen.event.findLast(({ type }) => type === 'playback.acknowledged').event"
        await page.until(f"{played}.played_ms >= Math.floor({SOUND_MS.strip()})")
        assert await page.evaluate(f"{played}.history_committed") is not None
        assert await page.evaluate(f"{played}.played_ms") == int(await page.evaluate(SOUND_MS))
        assert await page.evaluate("back.dropped_ms") == 0
        numbers = await page.evaluate(
            "seen.event.map((event) => event.server_event_seq).filter(Number.isInteger)"
        )
        assert numbers == list(range(1, len(numbers) + 1))
        assert await page.evaluate(ERRORS) == []
        await page.evaluate("call.hangUp()")


@pytest.mark.parametrize("way", BREAKS)
async def test_in_mid_question(browse: Browse, cable: BreakableLine, way: str) -> None:
    words = "hello again again hello hello again again hello"
    async with browse((silence(1.5), said(words), silence(40)), url=blank(cable)) as page:
        await begin(page)
        await page.until("call.floor.you")
        BREAKS[way](cable)
        await page.until("window.back !== undefined")
        await page.until("call.transcript.entries.some(({ state }) => state === 'final')")
        heard = "call.transcript.entries.find(({ state }) => state === 'final').text.trim()"
        assert await page.evaluate(heard) == words
        await page.until(entry(f"Well, you said {words}.", "heard"))
        assert await page.evaluate("back.dropped_ms") == 0
        assert await page.evaluate(ERRORS) == []
        await page.evaluate("call.hangUp()")


async def test_the_page_says_that_it_dials_again_and_goes_on(
    browse: Browse, cable: BreakableLine
) -> None:
    url = f"http://127.0.0.1:{cable.port}/"
    async with browse((silence(60),), url=url, settings='{"dialect":"duplex"}') as page:
        await page.click("#connect")
        await page.until("document.body.dataset.phase === 'live'")
        cable.refuses = True
        cable.reset()
        await page.until("document.querySelector('#status').textContent === 'Reconnecting…'")
        assert await page.evaluate("document.body.dataset.phase") == "live"
        cable.refuses = False
        await page.until("document.querySelector('#status').textContent === 'Listening'")
        await page.click("#hang-up")


async def test_a_session_that_is_gone_is_told(
    browse: Browse, app: App, cable: BreakableLine
) -> None:
    async with browse((silence(60),), url=blank(cable)) as page:
        await begin(page)
        cable.refuses = True
        cable.reset()
        await page.until("call.isReconnecting")
        (session,) = app.sessions.look()
        waiting = app.sessions.get(session.id)
        assert waiting is not None
        waiting.close("closed")
        cable.refuses = False
        await page.until("call.phase === 'ended'")
        problem = await page.evaluate("seen.problem.at(-1)")
        assert problem["kind"] == "session-gone"
        assert "Connect again" in problem["steps"][0]


async def test_over_webrtc_another_offer_goes_on_with_the_answer(
    browse: Browse, app: App, cable: BreakableLine
) -> None:
    microphone = (silence(1.5), said("hello long"), silence(40))
    async with browse(microphone, flags=FLAGS, scripts=(EAR,), url=blank(cable)) as page:
        options = {"transport": "webrtc", "fallback": False, "key": ""}
        assert await page.evaluate(start(**options)) == "webrtc"
        await page.evaluate(FOLLOW)
        await page.until(f"{PLAYED}.some(({{ heardCharacters }}) => heardCharacters > 8)")
        # Without a word to the server, as when a network is left for another one.
        await page.evaluate("peer.close()")
        await page.until("call.isReconnecting")
        await page.until("window.back !== undefined")
        assert len(app.sessions) == 1
        created = "seen.event.filter(({ type }) => type === 'session.created')"
        await page.until(f"{created}.length === 2")
        first, second = await page.evaluate(created)
        assert second["session"]["id"] == first["session"]["id"]
        await page.until(entry(ANSWER, "heard"))
        assert await page.evaluate(ERRORS) == []
        await page.evaluate("call.hangUp()")
