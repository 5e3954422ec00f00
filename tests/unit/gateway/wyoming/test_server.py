"""The ``wyoming`` package, which Home Assistant uses, asks for speech and for transcription."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import Describe, Info
from wyoming.ping import Ping, Pong
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)

from duologue.core.errors import ConfigError
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.wyoming.server import MAX_UTTERANCES
from tests.conformance.talking_gateway import TalkingGateway, talking_gateway, talking_settings
from tests.fakes.speech_gateway import MS_PER_CHARACTER
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps
from tests.patience import PATIENCE_S, until
from tests.unit.gateway.raw_websocket import connected

BYTES_PER_MS = 48
LONG = "This is a sentence that takes its time. " * 200


@pytest_asyncio.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TalkingGateway]:
    monkeypatch.syspath_prepend(tmp_path)
    settings = talking_settings(tmp_path, gateway=GatewaySettings(wyoming_port=0))
    async with talking_gateway(settings) as gateway:
        yield gateway
        await until(lambda: gateway.app.engine.stats().requests == 0)


def peer(server: TalkingGateway) -> AsyncTcpClient:
    assert server.app.wyoming_port is not None
    return AsyncTcpClient("127.0.0.1", server.app.wyoming_port)


async def next_event(client: AsyncTcpClient) -> Event:
    async with asyncio.timeout(PATIENCE_S):
        event = await client.read_event()
    assert event is not None
    return event


async def spoken(client: AsyncTcpClient) -> bytes:
    """Read one utterance."""
    start = AudioStart.from_event(await next_event(client))
    assert (start.rate, start.width, start.channels) == (24_000, 2, 1)
    sound = b""
    while not AudioStop.is_type((event := await next_event(client)).type):
        sound += AudioChunk.from_event(event).audio
    return sound


async def send_sound(client: AsyncTcpClient, pcm: bytes, channels: int = 1) -> None:
    form = {"rate": BEEP_RATE_HZ, "width": 2, "channels": channels}
    await client.write_event(AudioStart(**form).event())
    for at in range(0, len(pcm), 4096):
        await client.write_event(AudioChunk(audio=pcm[at : at + 4096], **form).event())
    await client.write_event(AudioStop().event())


async def complaint(client: AsyncTcpClient) -> Error:
    event = await next_event(client)
    assert Error.is_type(event.type), event
    return Error.from_event(event)


async def test_it_says_what_it_can(server: TalkingGateway) -> None:
    async with peer(server) as client:
        await client.write_event(Describe().event())
        info = Info.from_event(await next_event(client))
        await client.write_event(Ping("still there?").event())
        pong = Pong.from_event(await next_event(client))

    assert [voice.name for voice in info.tts[0].voices] == ["one", "two"]
    assert info.asr[0].models[0].languages == ["en"]
    assert pong.text == "still there?"


async def test_texts_are_spoken_one_after_the_other(server: TalkingGateway) -> None:
    async with peer(server) as client:
        for text in ("Hello there.", "And so on."):
            voice = SynthesizeVoice(name="two")
            await client.write_event(Synthesize(text=text, voice=voice).event())
        first, second = await spoken(client), await spoken(client)

    assert len(first) == len("Hello there.") * MS_PER_CHARACTER * BYTES_PER_MS
    assert len(second) == len("And so on.") * MS_PER_CHARACTER * BYTES_PER_MS


async def test_text_that_comes_in_pieces_is_spoken_as_it_comes(server: TalkingGateway) -> None:
    async with peer(server) as client:
        await client.write_event(SynthesizeStart().event())
        await client.write_event(SynthesizeChunk("Hello there. And").event())
        assert AudioStart.is_type((await next_event(client)).type)
        assert AudioChunk.is_type((await next_event(client)).type)
        await client.write_event(SynthesizeChunk(" so on.").event())
        # Home Assistant sends the whole text as well, for servers that know no pieces.
        await client.write_event(Synthesize(text="Hello there. And so on.").event())
        await client.write_event(SynthesizeStop().event())
        kinds = []
        while not SynthesizeStopped.is_type((event := await next_event(client)).type):
            kinds.append(event.type)

    assert kinds[-1] == "audio-stop"
    assert kinds.count("audio-stop") == 1


@pytest.mark.parametrize("channels", [1, 2])
async def test_speech_is_written_down(server: TalkingGateway, channels: int) -> None:
    pcm = beeps("hello again")
    if channels == 2:
        pcm = b"".join(pcm[at : at + 2] * 2 for at in range(0, len(pcm), 2))
    async with peer(server) as client:
        await client.write_event(Transcribe(language="en").event())
        await send_sound(client, pcm, channels)
        transcript = Transcript.from_event(await next_event(client))

    assert transcript.text == "hello again"
    assert transcript.language == "en"


async def test_c74_silence_is_no_text(server: TalkingGateway) -> None:
    async with peer(server) as client:
        await send_sound(client, bytes(BEEP_RATE_HZ * 4))

        assert Transcript.from_event(await next_event(client)).text == ""


async def test_what_cannot_be_done_is_told_and_the_line_lives(server: TalkingGateway) -> None:
    async with peer(server) as client:
        await client.write_event(Synthesize(text="Hi.", voice=SynthesizeVoice(name="karl")).event())
        assert "no voice 'karl'" in (await complaint(client)).text
        await client.write_event(Synthesize(text="x" * 30_000).event())
        assert (await complaint(client)).code == "limit_exceeded"
        await client.write_event(AudioStart(rate=16_000, width=4, channels=1).event())
        assert "2 bytes" in (await complaint(client)).text
        await client.write_event(Event("audio-start", {"rate": "fast"}))
        assert (await complaint(client)).code == "invalid_value"
        await client.write_event(Transcribe(language="de").event())
        await send_sound(client, beeps("hello"))
        assert "understands: en" in (await complaint(client)).text
        await client.write_event(Event("detect"))

        await client.write_event(Synthesize(text="Still here.").event())
        assert await spoken(client)


async def test_what_is_no_event_ends_the_connection(server: TalkingGateway) -> None:
    assert server.app.wyoming_port is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", server.app.wyoming_port)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        assert b"no event" in await reader.read()
    writer.close()
    await writer.wait_closed()


async def test_a_client_that_hangs_up_ends_the_work(server: TalkingGateway) -> None:
    async with peer(server) as client:
        await client.write_event(Synthesize(text=LONG).event())
        await next_event(client)
        assert server.app.engine.stats().requests == 1

    await until(lambda: server.app.engine.stats().requests == 0)


async def test_a_server_that_goes_down_lets_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    settings = talking_settings(tmp_path, gateway=GatewaySettings(wyoming_port=0))
    async with talking_gateway(settings) as gateway:
        client = peer(gateway)
        await client.connect()
        await client.write_event(Synthesize(text=LONG).event())
        await next_event(client)
    async with asyncio.timeout(PATIENCE_S):
        while await client.read_event() is not None:
            pass
    await client.disconnect()


async def test_a_port_that_is_taken_is_told(
    server: TalkingGateway, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("second")
    settings = talking_settings(
        folder, gateway=GatewaySettings(wyoming_port=server.app.wyoming_port)
    )

    with pytest.raises(ConfigError, match="wyoming_port"):
        async with talking_gateway(settings):
            pass


async def test_only_so_many_texts_wait_to_be_spoken(server: TalkingGateway) -> None:
    async with peer(server) as client:
        for _ in range(MAX_UTTERANCES + 1):
            await client.write_event(Synthesize(LONG).event())
        async with asyncio.timeout(PATIENCE_S):
            while not Error.is_type((event := await next_event(client)).type):
                pass
        assert Error.from_event(event).code == "rate_limited"


async def test_a_client_that_takes_nothing_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    gateway = GatewaySettings(wyoming_port=0, http=HttpSettings(stall_limit_s=0.2))
    async with talking_gateway(talking_settings(tmp_path, gateway=gateway)) as server:
        port = server.app.wyoming_port
        assert port is not None
        async with connected(port, is_deaf=True) as line:
            line.stop_reading()
            for _ in range(MAX_UTTERANCES):
                event = Synthesize(text=LONG).event()
                data = json.dumps(event.data).encode()
                head = {"type": event.type, "data_length": len(data)}
                line.write(json.dumps(head).encode() + b"\n" + data)
            await until(lambda: server.app.engine.stats().requests > 0)
            await until(lambda: server.app.engine.stats().requests == 0)
            line.go_on_reading()
            assert await line.lost() > 0
