"""The page over WebRTC, chosen in its settings, against the real gateway; and its key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from duologue.app import App, running_app
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.webrtc.settings import WebRtcSettings
from tests.browser.chromium import Page
from tests.browser.conftest import Browse
from tests.browser.test_call import connect, of_type
from tests.browser.test_sdk import EAR, FLAGS, LOUDNESS, NO_UDP, SENT_ENERGY, SOUND, said
from tests.browser.voice import silence
from tests.conformance.talking_gateway import API_KEY, talking_settings
from tests.patience import PATIENCE_S

WEBRTC = (
    '{"transport":"webrtc","echoCancellation":false,"noiseSuppression":false,'
    '"autoGainControl":false}'
)
CUT_IN = (
    silence(3.0),
    said("hello long"),
    silence(2.5),
    said("hello again"),
    silence(30),
)


@pytest.fixture
async def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[App]:
    monkeypatch.syspath_prepend(tmp_path)
    door = GatewaySettings(webrtc=WebRtcSettings(bind_address="127.0.0.1"))
    async with running_app(talking_settings(tmp_path, gateway=door)) as app:
        yield app
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0


async def hang_up(page: Page) -> None:
    await page.click("#hang-up")
    await page.until("document.body.dataset.phase === 'ended'")


async def test_a_person_talks_over_webrtc_and_cuts_in(browse: Browse, app: App) -> None:
    scripts = (EAR,)
    async with browse(CUT_IN, flags=FLAGS, scripts=scripts, url=app.url, settings=WEBRTC) as page:
        await connect(page)
        await page.until("document.body.dataset.floor === 'duologue'")
        assert await page.evaluate("document.body.dataset.status") == "duologue"
        await page.until("document.querySelector('#chat s.unheard')")
        assert (await page.text("#chat [data-state=cut] .words")).startswith("Well, you said")
        await page.until("[...document.querySelectorAll('#chat [data-state=heard]')].at(-1)")
        await page.until(f"{LOUDNESS} < 0.01")
        assert await page.evaluate("document.querySelectorAll('#latency-history li').length") == 2
        assert await of_type(page, "session.created") == [], "a WebSocket was opened"
        await hang_up(page)
        assert page.errors == []


async def test_what_is_typed_is_answered_over_webrtc(browse: Browse, app: App) -> None:
    async with browse((silence(60),), flags=FLAGS, url=app.url, settings=WEBRTC) as page:
        await connect(page)
        await page.evaluate("document.getElementById('message').value = 'good day'")
        await page.click("#send")
        await page.until("document.querySelector('#chat [data-state=heard]')")
        assert "Well, you said good day." in await page.text("#chat")
        await hang_up(page)
        assert page.errors == []


async def test_push_to_talk_works_over_webrtc(browse: Browse, app: App) -> None:
    settings = WEBRTC.replace("{", '{"turnTaking":"manual",', 1)
    microphone = (silence(1.0), *(said("hello again"), silence(0.4)) * 30)
    options = {"flags": FLAGS, "scripts": (EAR,), "url": app.url, "settings": settings}
    async with browse(microphone, **options) as page:
        await connect(page)
        await page.evaluate("new Promise((resolve) => setTimeout(resolve, 1500))")
        assert await page.evaluate(SENT_ENERGY) < SOUND
        await page.key("keyDown", " ", "Space")
        await page.evaluate("new Promise((resolve) => setTimeout(resolve, 1000))")
        assert await page.evaluate(SENT_ENERGY) > SOUND
        await page.key("keyUp", " ", "Space")
        await page.until("document.querySelector('#chat [data-state=heard]')")
        assert "Well, you said" in await page.text("#chat")
        await hang_up(page)
        assert page.errors == []


async def test_where_webrtc_is_blocked_the_page_says_so_and_calls_all_the_same(
    browse: Browse, app: App
) -> None:
    async with browse((silence(60),), flags=NO_UDP, url=app.url, settings=WEBRTC) as page:
        await page.click("#connect")
        await page.until("document.getElementById('notice').innerText.includes('WebSocket')")
        await page.until("document.body.dataset.phase === 'live'")
        assert len(await of_type(page, "session.created")) == 1
        await hang_up(page)


async def test_an_api_key_that_is_typed_is_exchanged_for_a_secret(
    browse: Browse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    async with (
        running_app(talking_settings(tmp_path)) as app,
        browse((silence(60),), url=app.url) as page,
    ):
        await page.evaluate(
            f"""(() => {{
                const field = document.querySelector('[name=apiKey]');
                field.value = '{API_KEY}';
                field.dispatchEvent(new Event('change', {{ bubbles: true }}));
            }})()"""
        )
        await connect(page)
        (realtime, key) = page.offered_protocols
        assert realtime == "realtime"
        assert key.startswith("openai-insecure-api-key.ek_")
        await hang_up(page)
