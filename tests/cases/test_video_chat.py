"""A camera beside a call: frames over a real WebSocket, to a language model that sees, by URL."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from duologue.clients import DuplexClient
from duologue.core.errors import ConfigError
from duologue.protocol.duplex.events import FrameAcknowledged, FramesConsumed
from duologue.sessions.settings import FrameSettings, SessionSettings
from duologue.settings import ModelSettings, Settings
from tests.conformance.talking_gateway import API_KEY, talking_gateway, talking_settings
from tests.fakes.pictures import picture, picture_url
from tests.fakes.seeing_llm import SeeingLlm, seeing_llm
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps
from tests.unit.gateway.raw_websocket import RawWebSocket, connected

pytestmark = pytest.mark.timeout(60)

CAMERA = "/v1/video/chat/stream"
LLM = """
name: llm_url
stages:
  - name: llm_url
    runner: openai_chat
    executor: inline
    settings: {{base_url: "{url}", model: seeing}}
"""
ONE_SLOT = FrameSettings(per_s=0.001, turns=2)
"""The whole test is one slot, unless a turn has cleared it: the newest frame wins."""


@pytest.fixture
def model() -> Iterator[SeeingLlm]:
    with seeing_llm() as server:
        yield server


@pytest.fixture
def settings(tmp_path: Path, model: SeeingLlm, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.syspath_prepend(tmp_path)
    made = talking_settings(tmp_path, sessions=SessionSettings(frames=ONE_SLOT))
    file = tmp_path / "llm_url.yaml"
    file.write_text(LLM.format(url=model.url))
    engine = made.engine.model_copy(update={"pipeline_files": (*made.engine.pipeline_files, file)})
    options = {"llm_pipeline": "llm_url", "examples": (), "prefill": False, "speculate": False}
    models = (
        ModelSettings(name="seeing", plugin="cascaded", options={**options, "sees": True}),
        ModelSettings(name="blind", plugin="cascaded", options=options),
    )
    return made.model_copy(update={"engine": engine, "models": models})


@asynccontextmanager
async def call(
    settings: Settings, model: str = "seeing", path: str = CAMERA
) -> AsyncIterator[RawWebSocket]:
    """A call that is open, with turns by hand."""
    async with talking_gateway(settings) as server, connected(server.port) as line:
        await line.upgrade(f"{path}?model={model}", Authorization=f"Bearer {API_KEY}")
        if path == CAMERA:
            line.send_event({"type": "session.update", "session": {"sample_rate_hz": BEEP_RATE_HZ}})
            await line.until("session.updated")
        yield line


def show(line: RawWebSocket, shade: int, **more: str) -> None:
    data = base64.b64encode(picture(shade)).decode()
    line.send_event({"type": "video.frame", "data": data, **more})


async def ask(line: RawWebSocket, text: str) -> list[dict[str, Any]]:
    """Ask in writing; returns the events up to the end of the answer."""
    line.send_event({"type": "input.text.append", "text": text})
    line.send_event({"type": "response.create"})
    return await line.until("response.done")


def of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == kind]


def said(events: list[dict[str, Any]]) -> str:
    (item,) = events[-1]["response"]["output"]
    text: str = item["content"][0]["transcript"]
    return text


async def test_a_question_is_asked_of_the_newest_frames(
    settings: Settings, model: SeeingLlm
) -> None:
    async with call(settings) as line:
        show(line, 50, frame_id="f1")
        show(line, 100, frame_id="f2")
        first, second = [(await line.until("video.frame.ack"))[-1] for _ in range(2)]
        assert (first["frame_id"], first["buffered_frames"]) == ("f1", 1)
        assert second["dropped_frame_ids"] == ["f1"]
        events = await ask(line, "What is that?")
        (consumed,) = of(events, "video.frames.consumed")
        (added,) = of(events, "conversation.item.added")[:1]
        assert consumed["frame_ids"] == ["f2"]
        assert consumed["item_id"] == added["item"]["id"]
        parts = added["item"]["content"]
        assert [part["type"] for part in parts] == ["input_text", "input_image"]
        assert parts[1]["image_url"] == "data:image/jpeg;base64,", "the client has the data"
        assert said(events) == "It is 100."
        assert model.shades() == [[100]]

        show(line, 150)
        await ask(line, "And now?")
        await ask(line, "And before?")
        show(line, 200)
        await ask(line, "And that?")
        # Two turns keep their frames; words stay.
        assert model.shades() == [[], [150], [], [200]]
        assert model.texts() == ["What is that?", "And now?", "And before?", "And that?"]


async def test_frames_go_with_what_is_said(settings: Settings, model: SeeingLlm) -> None:
    async with call(settings) as line:
        show(line, 150)
        audio = base64.b64encode(beeps("hello")).decode()
        line.send_event({"type": "input_audio_buffer.append", "audio": audio})
        line.send_event({"type": "input_audio_buffer.commit", "response_create": True})
        events = await line.until("response.done")
        assert events[-1]["response"]["status"] == "completed"
        (consumed,) = of(events, "video.frames.consumed")
        assert (consumed["frames"], consumed["frame_ids"]) == (1, [])
        assert model.texts() == ["hello"]
        assert model.shades() == [[150]]
        assert said(events) == "It is 150."


async def test_what_cannot_be_shown_is_refused_and_the_call_goes_on(
    settings: Settings, model: SeeingLlm
) -> None:
    async with call(settings) as line:
        for data, code in (("AAAA", "undecodable_image"), ("A", "invalid_base64")):
            line.send_event({"type": "video.frame", "event_id": "e", "data": data})
            error = (await line.until("error"))[-1]["error"]
            assert error["event_id"] == "e"
            assert error["code"] == code
        assert said(await ask(line, "What is that?")) == "Nothing."


async def test_a_model_that_does_not_see_says_so_and_the_call_goes_on(
    settings: Settings, model: SeeingLlm
) -> None:
    async with call(settings, "blind") as line:
        show(line, 100)
        error = (await line.until("error"))[-1]["error"]
        assert (error["code"], error["param"]) == ("unsupported", "type")
        assert said(await ask(line, "What is that?")) == "Nothing."
        assert model.shades() == [[]]


async def test_the_realtime_api_shows_pictures_in_items_and_knows_no_frames(
    settings: Settings, model: SeeingLlm
) -> None:
    async with call(settings, path="/v1/realtime") as line:
        await line.until("session.created")
        show(line, 100)
        assert (await line.until("error"))[-1]["error"]["param"] == "type"
        content = [
            {"type": "input_text", "text": "What is that?"},
            {"type": "input_image", "image_url": picture_url(50)},
            {"type": "input_image", "image_url": picture_url(100)},
        ]
        item = {"type": "message", "role": "user", "content": content}
        line.send_event({"type": "conversation.item.create", "item": item})
        line.send_event({"type": "response.create"})
        assert said(await line.until("response.done")) == "It is 100."
        assert model.shades() == [[50, 100]]
        assert model.texts() == ["What is that?"]


async def test_our_own_client_shows_frames_to_who_sees(
    settings: Settings, model: SeeingLlm
) -> None:
    async with talking_gateway(settings) as server:
        url = f"ws://127.0.0.1:{server.port}/v1/realtime"

        def dialled(name: str, **how: Any) -> DuplexClient:
            return DuplexClient.connect(url, api_key=API_KEY, model=name, **how)

        async with dialled("seeing", dialect="duplex") as caller:
            caller.show_frame(picture(100), "f1")
            acknowledged = await caller.wait_for(FrameAcknowledged)
            assert (acknowledged.frame_id, acknowledged.buffered_frames) == ("f1", 1)
            consumed = asyncio.create_task(caller.wait_for(FramesConsumed))
            assert (await caller.ask("What is that?")).text == "It is 100."
            assert (await consumed).frame_ids == ("f1",)
        assert model.shades() == [[100]]
        async with dialled("blind", dialect="duplex") as caller:
            with pytest.raises(ConfigError, match="does not see"):
                caller.show_frame(picture(100))
        async with dialled("seeing") as caller:
            with pytest.raises(ConfigError, match="duplex"):
                caller.show_frame(picture(100))
