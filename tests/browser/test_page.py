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
OFF_SCREEN = """
[...document.querySelectorAll('button, input')]
  .filter((element) => element.checkVisibility())
  .filter((element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return left < 0 || right > innerWidth || top < 0 || bottom > innerHeight;
  })
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
@pytest.mark.parametrize("turn_taking", ["semantic_vad", "manual"])
async def test_everything_fits_and_can_be_hit_with_a_finger(
    browse: Browse, width: int, height: int, turn_taking: str
) -> None:
    async with browse(QUIET, settings=f'{{"turnTaking":"{turn_taking}"}}') as page:
        await page.resize(width, height)
        overflow = "document.documentElement.scrollWidth > innerWidth"
        assert not await page.evaluate(overflow), "idle"
        assert await page.evaluate(TOO_SMALL) == []
        await connect(page)
        await page.evaluate("document.getElementById('message').value = 'Hello'")
        await page.click("#send")
        await page.until("!document.getElementById('latency').hidden")
        assert not await page.evaluate(overflow), "live"
        assert await page.evaluate(TOO_SMALL) == []
        assert await page.evaluate(OFF_SCREEN) == []
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
    """Without flow it turns pages, so of three looks at most one may see it move."""
    left_edge = """(() => {
        const canvas = document.getElementById('timeline');
        const { width, height } = canvas;
        const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
        for (let x = 0; x < width; x += 1) {
            for (let y = 0; y < height; y += 1) if (data[4 * (y * width + x) + 3]) return x;
        }
        return width;
    })()"""
    moves = f"""(async () => {{
        const edges = [];
        for (let look = 0; look < 4; look += 1) {{
            edges.push({left_edge});
            await new Promise((resolve) => setTimeout(resolve, 250));
        }}
        return edges.slice(1).filter((edge, i) => edge !== edges[i]).length;
    }})()"""
    async with browse(question) as page:
        await page.resize(1280, 800)
        await page.prefer(prefers_reduced_motion="reduce")
        await connect(page)
        assert await page.evaluate(moves) <= 1
        await page.prefer(prefers_reduced_motion="no-preference")
        assert await page.evaluate(moves) == 3
