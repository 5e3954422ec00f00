from __future__ import annotations

import asyncio

import msgspec
from aiohttp import web

from duologue.core.errors import EngineError
from duologue.gateway.http.streamed import DONE, ByteStream, event_stream
from tests.unit.gateway.http.http_bench import error_of, served

ORIGIN = {"Origin": "http://localhost"}


class Word(msgspec.Struct):
    text: str


async def test_bytes_are_sent_as_they_come() -> None:
    first_read = asyncio.Event()

    async def speak(request: web.Request) -> web.StreamResponse:
        stream = ByteStream(request, "audio/wav")
        assert not stream.has_begun
        await stream.write(b"one")
        await first_read.wait()
        await stream.write(b"two")
        return await stream.end()

    async with served(speak) as client, client.post("/try") as answer:
        assert answer.content_type == "audio/wav"
        assert await answer.content.readexactly(3) == b"one"
        first_read.set()
        assert await answer.read() == b"two"


async def test_events_are_sent_with_names_and_an_end() -> None:
    async def speak(request: web.Request) -> web.StreamResponse:
        async with event_stream(request, 60, DONE) as stream:
            await stream.send(Word("a"))
            await stream.send(Word("b"), "word")
        return stream.response

    async with served(speak) as client, client.post("/try") as answer:
        assert answer.content_type == "text/event-stream"
        assert await answer.text() == (
            'data: {"text":"a"}\n\nevent: word\ndata: {"text":"b"}\n\ndata: [DONE]\n\n'
        )


async def test_an_error_before_the_first_event_has_its_status() -> None:
    async def fail(request: web.Request) -> web.StreamResponse:
        async with event_stream(request, 60, DONE):
            raise EngineError("broken")

    async with served(fail) as client, client.post("/try") as answer:
        assert await error_of(answer) == (500, "stage_failed", None)


async def test_an_error_after_the_first_event_is_an_event() -> None:
    async def fail(request: web.Request) -> web.StreamResponse:
        async with event_stream(request, 60, DONE) as stream:
            await stream.send(Word("a"))
            raise EngineError("broken")
        return stream.response

    async with served(fail) as client, client.post("/try") as answer:
        first, second, last, _ = (await answer.text()).split("\n\n")
    assert first == 'data: {"text":"a"}'
    error = msgspec.json.decode(second.removeprefix("data: "))["error"]
    assert (error["type"], error["code"]) == ("server_error", "stage_failed")
    assert last == "data: [DONE]"


async def test_silence_is_filled_with_comments() -> None:
    heard = asyncio.Event()

    async def think(request: web.Request) -> web.StreamResponse:
        async with event_stream(request, 0.01) as stream:
            await heard.wait()
            await stream.send(Word("a"))
        return stream.response

    async with served(think) as client, client.post("/try") as answer:
        assert await answer.content.readuntil(b"\n\n") == b": keep-alive\n\n"
        heard.set()
        assert (await answer.text()).endswith('data: {"text":"a"}\n\n')


async def test_pages_of_other_origins_may_read_a_stream_too() -> None:
    async def speak(request: web.Request) -> web.StreamResponse:
        async with event_stream(request, 60) as stream:
            await stream.send(Word("a"))
        return stream.response

    async with served(speak) as client:
        origin = f"http://127.0.0.1:{client._base_url.port}"  # type: ignore[union-attr]
        async with client.post("/try", headers={"Origin": origin}) as answer:
            assert answer.headers["Access-Control-Allow-Origin"] == origin
