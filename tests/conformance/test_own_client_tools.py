"""C61, C62, C64 with our own client: functions run beside a call, and the call does not notice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from duologue.app import App, running_app
from duologue.clients import CallEnded, ClipDevice, DuplexClient, Taken, Tool, ToolContext
from duologue.config import parse_section
from duologue.duplex_plugins.contract import (
    ItemView,
    PluginEffect,
    PluginInput,
    ResponseRequested,
)
from duologue.duplex_plugins.scripted.plugin import ScriptedPlugin, ScriptedSettings, State
from duologue.protocol.commands import ResponseParams
from duologue.protocol.events import ItemDone, SpeechStarted
from duologue.protocol.items import FunctionCallOutputItem
from duologue.protocol.response_events import ResponseCreated
from duologue.settings import ModelSettings
from tests.fakes.small_gateway import CALLING_TURNS, small_settings
from tests.fakes.talking_gateway import speech, talking_settings


@pytest_asyncio.fixture
async def gateway() -> AsyncIterator[App]:
    async with running_app(small_settings()) as app:
        yield app


def over_socket(app: App, *tools: Callable[..., object] | Tool) -> DuplexClient:
    return DuplexClient.connect(app.url, model="caller", tools=tools)


def in_process(app: App, *tools: Callable[..., object] | Tool) -> DuplexClient:
    return DuplexClient.in_process(app.sessions.open("caller"), tools=tools)


def weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


async def clock() -> str:
    """Tell the time."""
    return "noon"


@pytest.mark.parametrize("reach", [over_socket, in_process])
async def test_c61_two_functions_are_called_and_one_answer_follows(
    gateway: App, reach: Callable[..., DuplexClient]
) -> None:
    async with reach(gateway, weather, clock) as call:
        events = call.events()
        assert [tool.name for tool in call.session.tools] == ["weather", "clock"]
        answer = await call.ask("What is it like?")
        assert answer.text == "It is sunny in Nice noon."
        assert answer.status == "completed"
        assert len(answer.audio) > 24_000
    seen = [event async for event in events]
    assert sum(isinstance(event, ResponseCreated) for event in seen) == 2
    outputs = [
        event.item.output
        for event in seen
        if isinstance(event, ItemDone) and isinstance(event.item, FunctionCallOutputItem)
    ]
    assert sorted(outputs) == ["noon", "sunny in Nice"]


async def test_answers_show_what_was_called(gateway: App) -> None:
    async with over_socket(gateway, weather) as call:
        answers = call.responses()
        await call.say_text("What is it like?")
        first = await (await anext(answers)).finished()
        second = await (await anext(answers)).finished()
    assert [(each.name, each.arguments) for each in first.calls] == [("weather", '{"city":"Nice"}')]
    assert (second.text, second.calls) == ("It is sunny in Nice.", [])


async def test_a_function_that_fails_hangs_or_is_called_wrongly_is_an_output(gateway: App) -> None:
    hung = threading.Event()

    def weather(town: str) -> str:
        return town

    def clock() -> None:
        hung.wait()

    async with over_socket(gateway, weather, Tool(clock, timeout_s=0.05)) as call:
        answer = await call.ask("What is it like?")
        hung.set()
    assert "unknown field `city`" in answer.text
    assert "clock has not finished within 0.05 s" in answer.text

    def weather_fails(city: str) -> None:
        raise LookupError(city)

    async with over_socket(gateway, Tool(weather_fails, name="weather")) as call:
        answer = await call.ask("What is it like?")
    assert answer.text == 'It is {"error":"LookupError: Nice"}.'


async def test_functions_can_change_in_the_middle_of_a_call(gateway: App) -> None:
    async with over_socket(gateway) as call:
        assert (await call.ask("Hello?")).calls == []
        await call.ask("And?")
        await call.update(tools=[weather])
        assert (await call.ask("What is it like?")).text == "It is sunny in Nice."


async def test_a_server_that_goes_away_in_the_middle_of_a_function_ends_the_call(
    gateway: App,
) -> None:
    called, cancelled = asyncio.Event(), asyncio.Event()

    async def clock() -> str:
        called.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    async with over_socket(gateway, clock) as call:
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(_how_it_ended(call))
            await called.wait()
            gateway.sessions.close_all("server_shutting_down")
        assert "shutting down" in asking.result()
    assert cancelled.is_set()


async def _how_it_ended(call: DuplexClient) -> str:
    try:
        await call.ask("What is it like?")
    except CallEnded as exc:
        return exc.message
    return ""


async def test_c64_a_function_of_a_thread_may_use_the_call_while_it_runs(gateway: App) -> None:
    holder: list[DuplexClient] = []

    def weather(city: str, context: ToolContext) -> str:
        (call,) = holder
        filler = ResponseParams(conversation="none", metadata={"why": "filler"})
        context.run(call.wait_until(lambda: call.active_response_id is None))
        response_id = context.run(call.create_response(filler))
        context.run(call.wait_until(lambda: call.active_response_id != response_id))
        return f"sunny in {city}"

    async with over_socket(gateway, weather) as call:
        holder.append(call)
        answers = call.responses()
        asked = await call.say_text("What is it like?")
        seen = [await (await anext(answers)).finished() for _ in range(3)]
        assert seen[0].id == asked
        assert seen[1].resource.metadata == {"why": "filler"}
        assert seen[2].calls or "sunny in Nice" in seen[2].text


async def test_c64_a_function_that_blocks_leaves_the_audio_alone(tmp_path: Path) -> None:
    """It blocks until the person has interrupted twice; then its result is spoken, once."""
    settings = talking_settings(tmp_path)
    long = "I am still looking into it, which takes rather long, as you can hear. " * 2
    turns = [CALLING_TURNS[0], {"line": long}, {"line": long}, {"line": "So: {outputs}."}]
    model = ModelSettings(name="scripted", plugin="scripted", options={"turns": turns})
    release = threading.Event()
    runs = []

    def weather(city: str) -> str:
        runs.append(city)
        release.wait()
        return f"sunny in {city}"

    gaps: list[int] = []

    def listen(_said: bytes, _taken: Taken) -> None:
        gaps.append(call.playback.gap_samples)

    microphone = ClipDevice(on_frame=listen)
    async with running_app(settings.model_copy(update={"models": (model,)})) as app:
        call = DuplexClient.connect(app.url, device=microphone, tools=[weather])
        try:
            async with call:
                events, answers = call.events(), call.responses()
                microphone.say(speech(500))
                assert [each.name for each in (await (await anext(answers)).finished()).calls] == [
                    "weather"
                ]
                for _ in range(2):  # each cuts off the answer before, if there is one
                    microphone.say(speech(700))
                    going_on = await anext(answers)
                    await call.wait_until(lambda: call.playback.speaking is not None)
                release.set()
                await going_on.finished()
                result = await (await anext(answers)).finished()
                assert result.text == "So: sunny in Nice."
        finally:
            release.set()
    assert runs == ["Nice"]
    assert max(gaps) == 0
    starts = [event async for event in events if isinstance(event, SpeechStarted)]
    assert len(starts) == 3


async def test_a_late_result_is_dropped_and_logged(gateway: App) -> None:
    release = threading.Event()

    def clock() -> str:
        release.wait()
        return "late"

    with capture_logs() as logs:
        async with over_socket(gateway, Tool(clock, timeout_s=0.01)) as call:
            answer = await call.ask("What time is it?")
            assert "late" not in answer.text
            release.set()
            await call.wait_until(lambda: any(log["event"] == "tool_result_late" for log in logs))
            items = [line.text for line in call.transcript]
    assert items[-1] == answer.text


asked_of_model: list[Sequence[ItemView]] = []
"""What the model was given each time, in the order of its answers."""


class NotingPlugin(ScriptedPlugin):
    """Says its lines, and notes what it was given."""

    def step(self, state: State, item: PluginInput) -> Sequence[PluginEffect]:
        if isinstance(item, ResponseRequested):
            asked_of_model.append(item.conversation)
        return super().step(state, item)


def noting(options: Mapping[str, object]) -> NotingPlugin:
    return NotingPlugin(parse_section(ScriptedSettings, options, whose="a test"))


@pytest.mark.timeout(60)  # people talk for as long as they talk
async def test_c62_who_interrupts_right_after_the_output_gets_it_into_the_next_prompt(
    tmp_path: Path,
) -> None:
    long = "So it is {outputs}, and there is more to say of it than anybody wants to hear. "
    turns = [CALLING_TURNS[0], {"line": long * 3}, {"line": "Noon."}]
    plugin = f"{__name__}:{noting.__name__}"
    model = ModelSettings(name="scripted", plugin=plugin, options={"turns": turns})
    settings = talking_settings(tmp_path).model_copy(update={"models": (model,)})
    asked_of_model.clear()
    runs = []

    def weather(city: str) -> str:
        runs.append(city)
        return f"sunny in {city}"

    microphone = ClipDevice()
    async with (
        running_app(settings) as app,
        DuplexClient.connect(app.url, device=microphone, tools=[weather]) as call,
    ):
        events, answers = call.events(), call.responses()
        microphone.say(speech(500))
        assert [each.name for each in (await (await anext(answers)).finished()).calls] == [
            "weather"
        ]
        async for event in events:
            if isinstance(event, ItemDone) and isinstance(event.item, FunctionCallOutputItem):
                break
        microphone.say(speech(900))
        cut = await (await anext(answers)).finished()
        assert cut.status == "cancelled"
        last = await (await anext(answers)).finished()
        assert last.text == "Noon."
    assert runs == ["Nice"]
    assert len(asked_of_model) == 3
    *before, question = asked_of_model[-1]
    (at,) = (n for n, item in enumerate(before) if item.call is not None)
    (output,) = (item for item in before if item.role == "tool")
    assert before[at + 1] is output, "a call is followed by its output"
    assert (output.text, output.call_id) == ("sunny in Nice", before[at].call.call_id)
    assert question.role == "user"
