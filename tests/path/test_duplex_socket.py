"""The duplex dialect through a real socket, in both encodings: from the first word to the last."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from duologue.app import running_app
from tests.fakes.small_gateway import LINE, small_settings
from tests.unit.codecs.tones import tone
from tests.unit.gateway.raw_websocket import BINARY, CLOSE, TEXT, RawWebSocket, connected

PATH = "/v1/duplex?autostart=0"
Write = Callable[[Any], bytes]


class Peer:
    """A client that speaks one of the encodings and acknowledges every event."""

    def __init__(self, raw: RawWebSocket, opcode: int) -> None:
        self.raw = raw
        self.opcode = opcode
        self.events: list[dict[str, Any]] = []
        self.message_bytes = 0

    def send(self, **event: Any) -> None:
        if self.opcode == BINARY:
            self.raw.send(BINARY, msgspec.msgpack.encode(event))
        else:
            self.raw.send(TEXT, msgspec.json.encode(event))

    async def until(self, kind: str) -> dict[str, Any]:
        while True:
            frame = await self.raw.frame()
            assert frame.opcode == self.opcode
            self.message_bytes += len(frame.payload)
            read = msgspec.msgpack.decode if self.opcode == BINARY else json.loads
            event = read(frame.payload)
            self.events.append(event)
            self.send(type="session.event_ack", server_event_seq=event["server_event_seq"])
            if event["type"] == kind:
                return event


@pytest.mark.parametrize("opcode", [TEXT, BINARY], ids=["json", "msgpack"])
async def test_a_call_from_the_first_word_to_the_last(opcode: int) -> None:
    async with running_app(small_settings()) as app:
        port = int(app.url.rpartition(":")[2])
        async with connected(port) as raw:
            offered = {} if opcode == TEXT else {"Sec_WebSocket_Protocol": "realtime.msgpack"}
            await raw.upgrade(PATH, **offered)
            selected = raw.response.headers.get("Sec-WebSocket-Protocol")
            assert selected == offered.get("Sec_WebSocket_Protocol")
            peer = Peer(raw, opcode)
            peer.send(type="session.update", model="scripted", instructions="Be kind.")
            await peer.until("session.updated")
            audio = tone(16000, 0.2)
            for start in range(5):
                peer.send(
                    type="input_audio_buffer.append",
                    audio=audio,
                    format="pcm16",
                    sample_rate_hz=16000,
                    start_sample=start * 3200,
                )
            assert (await peer.until("input_audio_buffer.accepted"))["next_sample"] == 16000
            peer.send(type="input.commit")
            done = await peer.until("response.done")
            assert done["response"]["status"] == "completed"
            deltas = [e for e in peer.events if e["type"] == "response.output_audio.delta"]
            assert {type(e["delta"]) for e in deltas} == {bytes if opcode == BINARY else str}
            spoken = [
                e for e in peer.events if e["type"] == "response.output_audio_transcript.done"
            ]
            assert spoken[0]["transcript"] == LINE
            peer.send(type="playback.ack", played_ms=100, response_id=done["response_id"])
            told = (await peer.until("playback.acknowledged"))["event"]
            assert (told["played_ms"], told["history_committed"]) == (100, True)
            peer.send(type="nonsense", event_id="mine")
            error = (await peer.until("error"))["error"]
            assert (error["code"], error["event_id"]) == ("unknown_event_type", "mine")
            peer.send(type="session.close")
            await peer.until("session.closed")
            numbers = [event["server_event_seq"] for event in peer.events]
            assert numbers == list(range(1, len(numbers) + 1))
            frame = await raw.frame()
            assert (frame.opcode, frame.payload[:2]) == (CLOSE, (1000).to_bytes(2))


async def test_a_plain_call_may_be_packed_too() -> None:
    async with (
        running_app(small_settings()) as app,
        connected(int(app.url.rpartition(":")[2])) as raw,
    ):
        await raw.upgrade("/v1/realtime", Sec_WebSocket_Protocol="realtime.msgpack, realtime")
        frame = await raw.frame()
        created = msgspec.msgpack.decode(frame.payload)
        assert (frame.opcode, created["type"]) == (BINARY, "session.created")
        assert "server_event_seq" not in created
        raw.send(TEXT, b'{"type":"input_audio_buffer.clear"}')
        error = msgspec.msgpack.decode((await raw.frame()).payload)
        assert error["error"]["code"] == "invalid_msgpack"
        raw.send(BINARY, msgspec.msgpack.encode({"type": "input_audio_buffer.clear"}))
        cleared = msgspec.msgpack.decode((await raw.frame()).payload)
        assert cleared["type"] == "input_audio_buffer.cleared"
