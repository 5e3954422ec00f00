"""The server, the microphone and the browser of these tests.

``gateway`` is the one place that knows which server is tested. Whatever it yields needs a ``url``
of the page, and the levers of ``StubGateway`` for the tests in ``test_problems.py``: everything
else is read off the wire and off the sound that the page makes.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path

import pytest

from tests.browser import chromium, speaker_tap
from tests.browser.chromium import Page
from tests.browser.stub_gateway import StubGateway, Turn, serve
from tests.browser.voice import Pcm, silence, speech, write_wav

QUESTION = "What is the capital of France?"
INTERRUPTION = "No, tell me about the river instead."
SCRIPT = (
    Turn(
        QUESTION,
        (
            "The capital of France is Paris.",
            "It lies on the river Seine, and more than two million people live there.",
        ),
    ),
    Turn(INTERRUPTION, ("The Seine rises in Burgundy.",)),
)
Browse = Callable[..., AbstractAsyncContextManager[Page]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs a browser and runs in real time."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture
async def gateway() -> AsyncIterator[StubGateway]:
    """Yield a server that waits for calls."""
    async with serve(StubGateway(SCRIPT)) as stub:
        yield stub


@pytest.fixture
def question() -> tuple[Pcm, ...]:
    """Return what the microphone hears of somebody who asks once and then listens."""
    return silence(0.8), speech(QUESTION), silence(30)


@pytest.fixture
def interruption() -> tuple[Pcm, ...]:
    """Return what the microphone hears of somebody who asks, listens for a while and cuts in."""
    return silence(0.8), speech(QUESTION), silence(4.5), speech(INTERRUPTION), silence(30)


@pytest.fixture
def browse(gateway: StubGateway, tmp_path: Path) -> Browse:
    """Return a context manager that opens the page in a fresh browser.

    Its arguments: ``microphone``, the sound in front of it, or None for a machine without one;
    ``flags`` and ``scripts`` as ``chromium.new_page`` takes them; ``allows_microphone``, what the
    person answers when asked; ``url`` where it is not the page's usual address; ``settings`` that
    the page finds from an earlier visit.
    """
    profiles = count()

    @asynccontextmanager
    async def opened(
        microphone: tuple[Pcm, ...] | None = None,
        *,
        flags: tuple[str, ...] = (),
        scripts: tuple[str, ...] = (speaker_tap.SCRIPT,),
        allows_microphone: bool = True,
        url: str = "",
        settings: str = "",
    ) -> AsyncIterator[Page]:
        folder = tmp_path / f"browser{next(profiles)}"
        folder.mkdir()
        if allows_microphone:
            flags += ("--use-fake-ui-for-media-stream",)
        else:
            flags += ("--deny-permission-prompts",)
        if microphone is not None:
            wav = write_wav(folder / "microphone.wav", *microphone)
            flags += (
                "--use-fake-device-for-media-stream",
                f"--use-file-for-fake-audio-capture={wav}%noloop",
            )
        # The scripted server speaks the plain dialect alone.
        stored = {} if url else {"dialect": "realtime"}
        if settings or stored:
            text = json.dumps(stored | json.loads(settings or "{}"))
            scripts += (f"localStorage.setItem('duologue.settings', '{text}')",)
        async with chromium.new_page(folder / "profile", flags, scripts) as page:
            await page.open(url or gateway.url)
            yield page

    return opened
