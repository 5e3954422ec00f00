"""The page as a thing to look at and to reach: sizes, names, keys, colours, its own rules."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.browser.conftest import Browse
from tests.browser.stub_gateway import StubGateway
from tests.browser.test_call import connect
from tests.browser.voice import Pcm, silence

QUIET = (silence(60),)
NEEDS_NAME = {"button", "textbox", "combobox", "slider", "checkbox", "radio", "dialog", "image"}
TOO_SMALL = """
[...document.querySelectorAll('button, input, select, textarea')]
  .filter((element) => element.checkVisibility())
  .map((element) => (element.closest('label.check') ?? element.closest('.composer') ?? element))
  .filter((element) => element.getBoundingClientRect().height < 32)
  .map((element) => element.outerHTML)
"""


async def test_the_page_obeys_its_own_security_policy_and_asks_nobody_else(
    browse: Browse, gateway: StubGateway
) -> None:
    async with browse(QUIET, scripts=()) as page:
        await connect(page)
        requested = await page.evaluate(
            "performance.getEntriesByType('resource').map((entry) => entry.name)"
        )
        assert {urlsplit(url).netloc for url in requested} == {urlsplit(gateway.url).netloc}
        assert page.errors == []


@pytest.mark.parametrize(("width", "height"), [(360, 640), (1280, 800), (800, 360)])
async def test_everything_fits_and_can_be_hit_with_a_finger(
    browse: Browse, question: tuple[Pcm, ...], width: int, height: int
) -> None:
    async with browse(question) as page:
        await page.resize(width, height)
        overflow = "document.documentElement.scrollWidth > innerWidth"
        assert not await page.evaluate(overflow), "idle"
        assert await page.evaluate(TOO_SMALL) == []
        await connect(page)
        await page.until("document.querySelector('#chat .heard')?.textContent", timeout_s=20)
        assert not await page.evaluate(overflow), "live"
        assert await page.evaluate(TOO_SMALL) == []
        hang_up = "document.getElementById('hang-up').getBoundingClientRect().bottom <= innerHeight"
        assert await page.evaluate(hang_up), "hanging up needs no scrolling"
        await page.click("#open-settings")
        assert not await page.evaluate(overflow), "settings"
        assert await page.evaluate(TOO_SMALL) == []


async def test_every_control_has_a_name_for_those_who_do_not_see_it(browse: Browse) -> None:
    async with browse(QUIET) as page:
        await connect(page)
        await page.click("#open-settings")
        for state in ("settings open", "settings closed"):
            tree = await page.call("Accessibility.getFullAXTree")
            nameless = [
                node["role"]["value"]
                for node in tree["nodes"]
                if not node.get("ignored")
                and node["role"]["value"] in NEEDS_NAME
                and not node.get("name", {}).get("value")
            ]
            assert nameless == [], state
            await page.evaluate("document.getElementById('settings').close()")


async def test_a_call_can_be_made_and_ended_with_the_keyboard_alone(browse: Browse) -> None:
    async with browse(QUIET) as page:
        for _ in range(10):
            await page.key("keyDown", "Tab", "Tab")
            if await page.evaluate("document.activeElement.id") == "connect":
                break
        await page.key("keyDown", "\r", "Enter")
        await page.until("document.body.dataset.phase === 'live'")
        for _ in range(10):
            await page.key("keyDown", "Tab", "Tab")
            if await page.evaluate("document.activeElement.id") == "hang-up":
                break
        await page.key("keyDown", "\r", "Enter")
        await page.until("document.body.dataset.phase === 'ended'")


async def test_it_says_that_only_english_is_spoken(browse: Browse) -> None:
    async with browse(QUIET) as page:
        assert "English only" in await page.text("#welcome")


async def test_dark_mode_is_dark(browse: Browse) -> None:
    background = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    async with browse(QUIET) as page:
        assert min(await page.evaluate(background)) > 200
        await page.prefer(prefers_color_scheme="dark")
        assert max(await page.evaluate(background)) < 60


async def test_the_timeline_does_not_flow_for_those_who_asked_for_less_motion(
    browse: Browse, question: tuple[Pcm, ...]
) -> None:
    past = """(() => {
        const canvas = document.getElementById('timeline');
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return Array.from(data.subarray(3)).filter((_, i) => i % 4 === 0);
    })()"""
    moved = f"""(async () => {{
        const look = () => {past};
        const before = look();
        await new Promise((resolve) => setTimeout(resolve, 250));
        const after = look();
        return before.filter((alpha, i) => alpha > 0 && after[i] === 0).length / before.length;
    }})()"""
    async with browse(question) as page:
        await page.prefer(prefers_reduced_motion="reduce")
        await connect(page)
        await page.until("document.body.dataset.status === 'you'")
        still = await page.evaluate(moved)
        await page.prefer(prefers_reduced_motion="no-preference")
        flowing = await page.evaluate(moved)
        assert still < flowing / 3
