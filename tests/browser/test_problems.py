"""What goes wrong is said plainly, with a way on."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest

from tests.browser.chromium import Page
from tests.browser.conftest import Browse
from tests.browser.stub_gateway import StubGateway
from tests.browser.test_call import LAST_ANSWER, connect
from tests.browser.voice import Pcm, silence

QUIET = (silence(60),)
HOLD_STREAMS = """
(() => {
  const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  window.streams = [];
  navigator.mediaDevices.getUserMedia = async (constraints) => {
    const stream = await ask(constraints);
    streams.push(stream);
    return stream;
  };
})();
"""
HOLD_CONTEXTS = """
window.contexts = [];
window.AudioContext = class extends AudioContext {
  constructor(options) {
    super(options);
    contexts.push(this);
  }
};
"""


async def problem(page: Page, kind: str) -> str:
    """Wait for the message of this kind and return what it says."""
    await page.until(
        f"document.querySelector('#problem:not([hidden])[data-kind={json.dumps(kind)}]')"
    )
    return await page.text("#problem")


async def remedies(page: Page) -> list[str]:
    labels = "[...document.querySelectorAll('#problem-remedies button')].map((b) => b.innerText)"
    return list(await page.evaluate(labels))


async def test_without_a_microphone_one_can_go_on_by_typing(browse: Browse) -> None:
    async with browse(None) as page:
        await page.click("#connect")
        assert "No microphone found" in await problem(page, "microphone-missing")
        await page.click("[data-remedy=type]")
        await page.until("document.body.dataset.phase === 'live'")
        await page.evaluate("document.getElementById('message').value = 'Hello'")
        await page.click("#send")
        await page.until(f"{LAST_ANSWER}?.dataset.state === 'speaking'")
        await page.until("document.querySelector('#chat .heard')?.textContent")
        assert await page.evaluate("document.getElementById('problem').hidden")


async def test_a_blocked_microphone_is_told_where_to_be_allowed(browse: Browse) -> None:
    async with browse(QUIET, allows_microphone=False) as page:
        await page.click("#connect")
        text = await problem(page, "microphone-denied")
        assert "allow the microphone" in text
        assert await remedies(page) == ["Connect again", "Type instead"]


async def test_an_insecure_address_is_answered_with_a_secure_one(
    browse: Browse, gateway: StubGateway
) -> None:
    port = urlsplit(gateway.url).port
    flags = ("--host-resolver-rules=MAP duologue.test 127.0.0.1",)
    async with browse(QUIET, flags=flags, url=f"http://duologue.test:{port}/demo/") as page:
        assert f"http://localhost:{port}" in await problem(page, "insecure")


async def test_a_page_whose_script_cannot_run_says_so_after_a_while(browse: Browse) -> None:
    too_old = "delete Array.prototype.at; delete window.ResizeObserver"
    visible = "getComputedStyle(document.getElementById('problem')).visibility === 'visible'"
    async with browse(QUIET, scripts=(too_old,)) as page:
        assert not await page.evaluate(visible)
        await page.until(visible)
        assert "did not start" in await problem(page, "not-started")


async def test_an_old_browser_is_told_so(browse: Browse) -> None:
    async with browse(QUIET, scripts=("delete window.AudioWorkletNode",)) as page:
        assert "AudioWorkletNode" in await problem(page, "unsupported")


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (503, "server_full", "server-full"),
        (401, "invalid_api_key", "key-refused"),
        (404, "model_not_found", "server-refused"),
    ],
)
async def test_a_refused_call_gives_the_servers_reason(
    browse: Browse, gateway: StubGateway, status: int, code: str, kind: str
) -> None:
    gateway.refuse_calls(status, code, f"The server says {code}.")
    async with browse(QUIET) as page:
        await page.click("#connect")
        assert f"The server says {code}." in await problem(page, kind)
        gateway.refusal = None
        await page.click("[data-remedy=call]")
        await page.until("document.body.dataset.phase === 'live'")
        assert await page.evaluate("document.getElementById('problem').hidden")


async def test_a_server_that_is_starting_is_called_again_by_itself_once_it_is_ready(
    browse: Browse, gateway: StubGateway
) -> None:
    gateway.refuse_calls(503, "server_not_ready", "The models are being loaded.")
    async with browse(QUIET) as page:
        await page.click("#connect")
        assert "The models are being loaded." in await problem(page, "server-starting")
        gateway.refusal = None
        await page.until("document.body.dataset.phase === 'live'")
        assert await page.evaluate("document.getElementById('problem').hidden")


async def test_a_server_that_is_not_there_is_missed(browse: Browse, gateway: StubGateway) -> None:
    async with browse(QUIET) as page:
        await gateway.stop()
        await page.click("#connect")
        assert "does not answer" in await problem(page, "server-gone")
        assert await remedies(page) == ["Connect again"]


async def test_a_broken_call_keeps_what_was_said_and_can_be_dialled_again(
    browse: Browse, gateway: StubGateway, question: tuple[Pcm, ...]
) -> None:
    async with browse(question) as page:
        await connect(page)
        await page.until("document.querySelector('#chat .heard')?.textContent")
        await gateway.drop_calls()
        assert "connection broke" in await problem(page, "connection-lost")
        assert "capital of France" in await page.text("#chat")
        await page.click("[data-remedy=call]")
        await page.until("document.body.dataset.phase === 'live'")
        assert "capital of France" in await page.text("#chat")


async def test_a_microphone_that_is_pulled_out_leaves_the_call_on(browse: Browse) -> None:
    async with browse(QUIET, scripts=(HOLD_STREAMS,)) as page:
        await connect(page)
        await page.evaluate("streams[0].getTracks()[0].dispatchEvent(new Event('ended'))")
        assert "went away" in await problem(page, "microphone-lost")
        assert await page.evaluate("document.body.dataset.phase") == "live"
        assert await page.evaluate("document.body.dataset.status") == "deaf"


async def test_sound_that_the_system_paused_can_be_resumed(browse: Browse) -> None:
    async with browse(QUIET, scripts=(HOLD_CONTEXTS,)) as page:
        await connect(page)
        await page.evaluate("Promise.all(contexts.map((context) => context.suspend()))")
        await problem(page, "sound-suspended")
        await page.click("[data-remedy=resume]")
        await page.until("document.getElementById('problem').hidden")
        await page.until("contexts.every(({ state }) => state === 'running')")


async def test_a_server_that_takes_turns_in_another_way_still_holds_the_call(
    browse: Browse, gateway: StubGateway, question: tuple[Pcm, ...]
) -> None:
    gateway.turn_detection = ("server_vad",)
    async with browse(question) as page:
        await connect(page)
        await page.until("document.getElementById('notice').innerText.includes('own way')")
        await page.until("document.querySelector('#chat .heard')?.textContent")
        (update,) = [m.event for m in await page.messages() if m.type == "session.updated"]
        assert update["session"]["audio"]["input"]["transcription"]["model"]


async def test_the_key_goes_into_the_subprotocol_and_nowhere_else(browse: Browse) -> None:
    async with browse(QUIET) as page:
        await page.click("#open-settings")
        await page.evaluate(
            """(() => {
                const field = document.querySelector('[name=apiKey]');
                field.value = 'ek_test';
                field.dispatchEvent(new Event('change', { bubbles: true }));
                document.getElementById('settings').close();
            })()"""
        )
        await connect(page)
        assert page.offered_protocols == ["realtime", "openai-insecure-api-key.ek_test"]
        assert "ek_test" not in await page.evaluate("JSON.stringify(localStorage)")
