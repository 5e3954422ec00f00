from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import av
import pytest
import pytest_asyncio

from duologue.gateway.http.settings import HttpSettings
from tests.conformance.talking_gateway import API_KEY
from tests.fakes.speech_gateway import MS_PER_CHARACTER, SpeechGateway, speech_gateway
from tests.patience import until

PATH = "/v1/audio/speech/stream"
LONG = "This is a sentence that takes its time. " * 200
BYTES_PER_MS = 48


@pytest_asyncio.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SpeechGateway]:
    monkeypatch.syspath_prepend(tmp_path)
    async with speech_gateway(tmp_path, HttpSettings(max_speech_chars=10_000)) as gateway:
        yield gateway
        await until(lambda: gateway.work == 0)


@dataclass
class Line:
    """A client that keeps what it hears, by utterance."""

    socket: aiohttp.ClientWebSocketResponse
    audio: bytes = b""
    heard: list[dict[str, Any]] = field(default_factory=list)

    async def say(self, kind: str, **fields: object) -> None:
        await self.socket.send_json({"type": kind, **fields})

    async def until(self, kind: str) -> dict[str, Any]:
        """Read up to an event of a kind."""
        while True:
            message = await self.socket.receive(10)
            if message.type is aiohttp.WSMsgType.BINARY:
                self.audio += message.data
                continue
            assert message.type is aiohttp.WSMsgType.TEXT, message
            event = message.json()
            self.heard.append(event)
            if event["type"] == kind:
                return event

    async def until_closed(self) -> int | None:
        while (await self.socket.receive(10)).type not in (
            aiohttp.WSMsgType.CLOSE,
            aiohttp.WSMsgType.CLOSING,
            aiohttp.WSMsgType.CLOSED,
        ):
            pass
        return self.socket.close_code

    def marks(self) -> list[dict[str, Any]]:
        return [mark for event in self.heard for mark in event.get("marks", [])]


@asynccontextmanager
async def line(server: SpeechGateway, **config: object) -> AsyncIterator[Line]:
    async with server.http.ws_connect(PATH) as socket:
        client = Line(socket)
        await client.until("session.created")
        if config:
            await client.say("session.config", **config)
            await client.until("session.updated")
        yield client


async def test_text_that_comes_in_pieces_is_spoken_as_it_comes(server: SpeechGateway) -> None:
    async with line(server) as client:
        await client.say("input.text", text="Hello there. And")
        start = await client.until("audio.start")
        await client.until("audio.marks")
        first = len(client.audio)
        assert first == len("Hello there.") * MS_PER_CHARACTER * BYTES_PER_MS

        await client.say("input.text", text=" so on.")
        await client.say("input.done")
        done = await client.until("audio.done")

    assert start == {
        "type": "audio.start",
        "utterance": 0,
        "response_format": "pcm",
        "sample_rate": 24000,
    }
    assert done["reason"] == "completed"
    assert done["text_chars"] == len("Hello there. And so on.")
    assert done["audio_ms"] == len(client.audio) // BYTES_PER_MS
    assert client.marks()[-1] == {
        "text_end": len("Hello there. And so on."),
        "audio_ms": done["audio_ms"],
        "kind": "clause",
    }


async def test_a_flush_says_what_is_no_complete_clause(server: SpeechGateway) -> None:
    async with line(server) as client:
        await client.say("input.text", text="Hello")
        await client.say("input.flush")
        await client.until("audio.marks")
        assert client.audio

        await client.say("input.text", text=" again.")
        await client.say("input.done")
        done = await client.until("audio.done")

    assert (done["utterance"], done["reason"]) == (0, "completed")


async def test_utterances_are_spoken_one_after_the_other(server: SpeechGateway) -> None:
    async with line(server) as client:
        for text in ("First one.", "Second one."):
            await client.say("input.text", text=text)
            await client.say("input.done")
        await client.until("audio.done")
        await client.until("audio.done")

    order = [(event["type"], event["utterance"]) for event in client.heard if "utterance" in event]
    assert [each for each in order if each[0] != "audio.marks"] == [
        ("audio.start", 0),
        ("audio.done", 0),
        ("audio.start", 1),
        ("audio.done", 1),
    ]


async def test_after_a_cancel_no_sound_comes(server: SpeechGateway) -> None:
    async with line(server) as client:
        await client.say("input.text", text=LONG)
        await client.until("audio.start")
        await client.say("input.cancel")
        done = await client.until("audio.done")
        sent = len(client.audio)

        assert done["reason"] == "cancelled"
        assert done["audio_ms"] == sent // BYTES_PER_MS
        assert sent < len(LONG) * MS_PER_CHARACTER * BYTES_PER_MS / 2
        await until(lambda: server.work == 0)

        await client.say("input.text", text="And now this.")
        await client.say("input.done")
        await client.until("audio.start")
        assert len(client.audio) == sent
        assert (await client.until("audio.done"))["reason"] == "completed"


async def test_a_cancel_ends_those_that_wait_too(server: SpeechGateway) -> None:
    async with line(server) as client:
        for _ in range(3):
            await client.say("input.text", text=LONG)
            await client.say("input.done")
        await client.until("audio.start")
        await client.say("input.cancel")
        reasons = [(await client.until("audio.done"))["reason"] for _ in range(3)]

    assert reasons == ["cancelled"] * 3


async def test_other_forms_are_one_file_for_each_utterance(server: SpeechGateway) -> None:
    async with line(server, response_format="mp3", voice="two", speed=4) as client:
        await client.say("input.text", text="Hello there. And so on.")
        await client.say("input.done")
        done = await client.until("audio.done")

    with av.open(io.BytesIO(client.audio)) as file:
        assert file.format.name == "mp3"
        seconds = sum(frame.samples for frame in file.decode(audio=0)) / 24_000
    assert seconds == pytest.approx(done["audio_ms"] / 1000, abs=0.1)


async def test_speech_may_come_in_base64(server: SpeechGateway) -> None:
    async with line(server, audio="base64") as client:
        await client.say("input.text", text="Hello there.")
        await client.say("input.done")
        done = await client.until("audio.done")

    assert client.audio == b""
    chunks = [event for event in client.heard if event["type"] == "audio.chunk"]
    pcm = b"".join(base64.b64decode(event["audio"]) for event in chunks)
    assert len(pcm) // BYTES_PER_MS == done["audio_ms"]


async def test_settings_change_between_utterances_and_keep_the_others(
    server: SpeechGateway,
) -> None:
    async with line(server, voice="two") as client:
        await client.say("session.config", speed=1.5)
        session = (await client.until("session.updated"))["session"]
        assert (session["voice"], session["speed"], session["model"]) == ("two", 1.5, "duologue")

        await client.say("input.text", text="Hello.")
        await client.say("session.config", voice="one", event_id="e7")
        error = (await client.until("error"))["error"]
        assert error["code"] == "conversation_already_has_active_response"
        assert error["event_id"] == "e7"


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"voice": "karl"}, "invalid_value", "voice"),
        ({"speed": 9}, "invalid_value", "speed"),
        ({"response_format": "ogg"}, "invalid_value", "response_format"),
        ({"model": "unheard-of"}, "model_not_found", "model"),
        ({"audio": "tape"}, "invalid_value", "audio"),
    ],
)
async def test_a_setting_that_is_not_possible_changes_nothing(
    server: SpeechGateway, fields: dict[str, object], code: str, param: str
) -> None:
    async with line(server) as client:
        await client.say("session.config", **{"voice": "two", **fields})
        error = (await client.until("error"))["error"]
        assert (error["code"], error["param"]) == (code, param)

        await client.say("session.config")
        assert (await client.until("session.updated"))["session"]["voice"] == "one"


async def test_messages_that_are_none_are_refused_and_the_line_lives(
    server: SpeechGateway,
) -> None:
    async with line(server) as client:
        for message in ("", "{", "[]", '{"type":"sing"}', '{"type":"input.text"}'):
            await client.socket.send_str(message)
            assert (await client.until("error"))["error"]["code"]
        await client.socket.send_bytes(b"\0")
        assert (await client.until("error"))["error"]["code"] == "invalid_json"

        await client.say("input.text", text="Still here.")
        await client.say("input.done")
        assert (await client.until("audio.done"))["reason"] == "completed"


async def test_limits_are_told(server: SpeechGateway) -> None:
    async with line(server) as client:
        await client.say("input.text", text="x" * 10_001)
        assert (await client.until("error"))["error"]["code"] == "limit_exceeded"
        for _ in range(5):
            await client.say("input.text", text=LONG)
            await client.say("input.done")
        assert (await client.until("error"))["error"]["code"] == "rate_limited"
        await client.say("input.cancel")


async def test_nothing_to_flush_to_finish_or_to_cancel_is_no_error(server: SpeechGateway) -> None:
    async with line(server) as client:
        for kind in ("input.flush", "input.done", "input.cancel"):
            await client.say(kind)
        await client.say("input.text", text=" ")
        await client.say("input.done")
        done = await client.until("audio.done")

    assert (done["reason"], done["text_chars"], done["audio_ms"]) == ("completed", 1, 0)
    assert "error" not in [event["type"] for event in client.heard]


async def test_a_goodbye_lets_the_last_utterance_end(server: SpeechGateway) -> None:
    async with line(server) as client:
        await client.say("input.text", text="Goodbye then")
        await client.say("session.close")
        await client.say("input.text", text="Too late.")
        assert (await client.until("audio.done"))["reason"] == "completed"
        assert await client.until_closed() == 1000


async def test_a_goodbye_with_nothing_to_say_ends_at_once(server: SpeechGateway) -> None:
    async with line(server) as client:
        await client.say("session.close")
        assert await client.until_closed() == 1000


async def test_a_client_that_hangs_up_ends_the_work(server: SpeechGateway) -> None:
    async with line(server) as client:
        await client.say("input.text", text=LONG)
        await client.until("audio.start")
        assert server.work == 1

    await until(lambda: server.work == 0)


async def test_an_idle_line_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    async with (
        speech_gateway(tmp_path, HttpSettings(speech_stream_idle_s=0.05)) as server,
        line(server) as client,
    ):
        assert (await client.until("error"))["error"]["code"] == "session_expired"
        assert await client.until_closed() == 1000


async def test_a_server_that_goes_down_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    async with aiohttp.ClientSession() as http:
        async with speech_gateway(tmp_path) as server:
            url = f"http://127.0.0.1:{server.port}{PATH}"
            socket = await http.ws_connect(url, headers={"Authorization": f"Bearer {API_KEY}"})
            client = Line(socket)
            await client.until("session.created")
            closing = asyncio.ensure_future(client.until_closed())
        assert await closing == 1001


async def test_a_key_is_needed_and_may_come_as_a_subprotocol(server: SpeechGateway) -> None:
    url = f"http://127.0.0.1:{server.port}{PATH}"
    async with aiohttp.ClientSession() as http:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect(url)
        assert refused.value.status == 401
        async with http.ws_connect(
            url, protocols=("realtime", f"openai-insecure-api-key.{API_KEY}")
        ) as socket:
            assert socket.protocol == "realtime"


async def test_a_plain_request_is_told_what_is_here(server: SpeechGateway) -> None:
    answer = await server.http.get(PATH)

    assert answer.status == 400
    assert "WebSocket" in (await answer.json())["error"]["message"]
