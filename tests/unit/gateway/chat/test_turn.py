from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from duologue.core.errors import DuologueError, EngineError, ProtocolError
from duologue.core.ids import id_maker
from duologue.engines.payloads import (
    AudioChunk,
    ChatMessage,
    ChatRequest,
    Payload,
    SpeakText,
    SpeechMark,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    Tools,
    ToolSpec,
)
from duologue.gateway.chat.turn import Ending, Turn
from duologue.gateway.route_requests import RouteRequests
from duologue.gateway.speech.voices import Manner
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine

VOICE = Manner("tts", "one")
RATE_HZ = 24_000


class Taken:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.written = ""
        self.calls: list[tuple[int, str, str, str]] = []
        self.spoken = b""
        self.spoken_when_written: list[int] = []

    async def text(self, text: str) -> None:
        self.written += text
        self.spoken_when_written.append(len(self.spoken))

    async def call(self, index: int, call_id: str, name: str, arguments: str) -> None:
        self.calls.append((index, call_id, name, arguments))

    async def speech(self, pcm: bytes) -> None:
        self.spoken += pcm


class Scene:
    """A turn on an engine that is delivered by hand."""

    def __init__(
        self,
        written: Sequence[Payload | EngineError] = (),
        *,
        manner: Manner | None = None,
        tools: Tools | None = None,
        schema: str = "",
        voice: str | None = None,
    ) -> None:
        self.engine = FakeEngine({"llm": lambda _: written, "tts": self._speak})
        self.taken = Taken()
        self.clauses: list[str] = []
        request = ChatRequest(
            (ChatMessage("user", "Hi"),),
            max_tokens=10,
            tools=tools or Tools(),
            schema=schema,
            voice=voice,
        )
        client = RouteRequests(self.engine, FakeClock(), id_maker(random.Random(1)), 30.0)
        self.turn = Turn(client, id_maker(random.Random(2)), "llm", request, manner, self.taken)
        self.sample = 0

    def _speak(self, payload: Payload) -> Sequence[Payload]:
        assert isinstance(payload, SpeakText)
        self.clauses.append(payload.text)
        chunk = AudioChunk(b"\x01\x00" * 10, RATE_HZ, self.sample)
        self.sample += 10
        return [chunk, SpeechMark(payload.text_end, self.sample)]

    async def outcome(self) -> Ending | DuologueError:
        async with asyncio.TaskGroup() as group:
            pump = group.create_task(self._deliver())
            try:
                return await self.turn.run()
            except DuologueError as error:
                return error
            finally:
                pump.cancel()

    async def run(self) -> Ending:
        outcome = await self.outcome()
        assert isinstance(outcome, Ending), outcome
        return outcome

    async def failure(self) -> DuologueError:
        outcome = await self.outcome()
        assert isinstance(outcome, DuologueError), outcome
        return outcome

    async def _deliver(self) -> None:
        while True:
            self.engine.deliver(2)
            await asyncio.sleep(0)


async def test_text_is_handed_on_as_it_is_written() -> None:
    scene = Scene([TextDelta("Hello"), TextDelta(" there."), TokenUsage(3, 2)])
    assert await scene.run() == Ending("stop", TokenUsage(3, 2))
    assert scene.taken.written == "Hello there."
    assert scene.engine.running == {}


@pytest.mark.parametrize("usage", [TokenUsage(3, 10), TokenUsage(3, 9, cut=True)])
async def test_an_answer_that_was_cut_says_so(usage: TokenUsage) -> None:
    assert await Scene([TextDelta("Hello"), usage]).run() == Ending("length", usage)


async def test_the_first_clause_is_spoken_while_the_model_writes() -> None:
    scene = Scene(
        [
            TextDelta("Hello there, my friend."),
            *(TextDelta(" How is it going?") for _ in range(9)),
            TokenUsage(3, 2),
        ],
        manner=VOICE,
    )
    assert (await scene.run()).reason == "stop"
    assert scene.taken.spoken == b"\x01\x00" * 10 * len(scene.clauses)
    assert " ".join(scene.clauses) == scene.taken.written
    assert scene.taken.spoken_when_written[-1] > 0


async def test_a_model_may_say_its_answer_itself() -> None:
    chunk = AudioChunk(b"\x01\x00" * 10, RATE_HZ)
    scene = Scene(
        [TextDelta("Hi"), chunk, TextDelta("!"), chunk, SpeechMark(3, 20), TokenUsage(3, 2)],
        voice="one",
    )
    assert await scene.run() == Ending("stop", TokenUsage(3, 2))
    assert scene.taken.written == "Hi!"
    assert scene.taken.spoken == 2 * chunk.pcm
    assert scene.clauses == []
    assert scene.taken.spoken_when_written == [0, len(chunk.pcm)]


async def test_what_a_model_says_at_another_rate_is_converted_to_its_end() -> None:
    chunks = [AudioChunk(b"\x01\x00" * 500, 12_000) for _ in range(3)]
    scene = Scene([TextDelta("Hi"), *chunks, TokenUsage(3, 2)], voice="one")
    await scene.run()
    assert len(scene.taken.spoken) == 3 * 2 * 1000


async def test_sound_from_a_model_that_was_not_asked_for_it_is_a_fault() -> None:
    scene = Scene([AudioChunk(b"\x01\x00", RATE_HZ)])
    assert "AudioChunk" in (await scene.failure()).message


async def test_an_answer_without_words_is_spoken_as_silence() -> None:
    scene = Scene([TokenUsage(3, 0)], manner=VOICE)
    assert (await scene.run()).reason == "stop"
    assert scene.taken.spoken == b""


async def test_calls_are_counted_anew_and_get_an_id() -> None:
    tools = Tools((ToolSpec("add"), ToolSpec("sub")))
    scene = Scene(
        [
            TextDelta("Let me see."),
            ToolCallDelta(0, "", "made_up", "{"),
            ToolCallDelta(0, arguments="}"),
            ToolCallDelta(1, "theirs", "add", '{"a"'),
            ToolCallDelta(1, arguments=":1}"),
            ToolCallDelta(2, name="sub", arguments="{}"),
            TokenUsage(3, 5),
        ],
        tools=tools,
    )
    assert (await scene.run()).reason == "tool_calls"
    first, more, second = scene.taken.calls
    assert first == (0, "theirs", "add", '{"a"')
    assert more == (0, "", "", ":1}")
    assert (second[0], second[2], second[3]) == (1, "sub", "{}")
    assert second[1].startswith("call_")


async def test_a_model_that_fails_ends_the_voice_too() -> None:
    scene = Scene([TextDelta("Hello there, my"), EngineError("broken")], manner=VOICE)
    error = await scene.failure()
    assert error.code == "stage_failed"
    scene.engine.deliver()
    assert scene.engine.running == {}


@pytest.mark.parametrize(
    ("schema", "tools", "param"),
    [
        ('{"type":"nonsense"}', None, "response_format.json_schema.schema"),
        ("", Tools((ToolSpec("add", "", '{"type":"nonsense"}'),)), "tools"),
        ("", None, "messages"),
    ],
)
async def test_what_the_model_cannot_use_is_the_clients_fault(
    schema: str, tools: Tools | None, param: str
) -> None:
    scene = Scene([EngineError("no", code="request_refused")], schema=schema, tools=tools)
    error = await scene.failure()
    assert isinstance(error, ProtocolError)
    assert (error.code, error.param) == ("invalid_value", param)


async def test_something_else_than_text_is_a_fault_of_the_model() -> None:
    error = await Scene([AudioChunk(b"", RATE_HZ)]).failure()
    assert error.message == "a language model gave AudioChunk"
