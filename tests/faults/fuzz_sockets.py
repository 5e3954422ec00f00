"""Mutated messages through real sockets, to a real gateway whose models are scripted.

A smaller part of the fuzzing: what the parts in between could spoil, frames, backlogs, logs.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
from structlog.testing import capture_logs

from duologue.protocol.dialect import Encoding, Family
from duologue.protocol.errors import ErrorCode
from tests.conformance.talking_gateway import (
    API_KEY,
    talking_gateway,
    talking_settings,
)
from tests.faults.good_messages import MESSAGES
from tests.faults.mutator import Mutator
from tests.unit.gateway.raw_websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    TEXT,
    RawWebSocket,
    connected,
)

PROBE_EVERY = 100
PATHS: dict[Family, str] = {
    "realtime": "/v1/realtime?model=m",
    "beta": "/v1/realtime?model=m",
    "duplex": "/v1/duplex?model=m&autostart=0",
}
PROTOCOLS: dict[Encoding, str] = {"json": "realtime", "msgpack": "realtime.msgpack"}
ANSWER = "Well, you said hello."


class Caller:
    """One connection, and what it expects to live through."""

    def __init__(self, peer: RawWebSocket, family: Family, encoding: Encoding) -> None:
        self.peer = peer
        self._family = family
        self._encoding = encoding
        self._probes = 0

    async def open(self) -> None:
        """Connect, and be greeted."""
        await self.connect()
        if self._family == "duplex":
            assert await self.describe()
        else:
            assert (await self._event())["type"] == "session.created"

    async def connect(self) -> None:
        """Connect, and say nothing."""
        bearer = {"Authorization": f"Bearer {API_KEY}"}
        if self._family == "beta":
            bearer["OpenAI-Beta"] = "realtime=v1"
        offered = PROTOCOLS[self._encoding]
        await self.peer.upgrade(PATHS[self._family], Sec_WebSocket_Protocol=offered, **bearer)

    async def describe(self) -> bool:
        """Open the session by its first message, or change it; False: the call is over."""
        self.send({"type": "session.update", "session": {"voice": "one"}})
        while (kind := (await self._event_or_end())["type"]) != "session.updated":
            if kind == "goodbye":
                return False
        return True

    def send(self, event: dict[str, Any]) -> None:
        """Send an event."""
        if self._encoding == "json":
            self.peer.send(TEXT, json.dumps(event).encode())
        else:
            self.peer.send(BINARY, msgspec.msgpack.encode(event))

    async def probe(self) -> bool:
        """Have a question answered, beside whatever else goes on; False: it only listens now.

        Raises:
            EOFError: The server has ended the connection.
        """
        self._probes += 1
        name = f"probe_{self._probes}"
        question = {"type": "message", "role": "user", "content": [_text("hello")]}
        response = {
            "conversation": "none",
            "input": [question],
            "instructions": "",
            "output_modalities": ["text"],
            "modalities": ["text"],
            "metadata": {"probe": name},
            "tools": [],
            "tool_choice": "auto",
            "max_output_tokens": "inf",
        }
        request = {"type": "response.create", "event_id": name, "response": response}
        self.send(request)
        while True:
            event = await self._event()
            if event["type"] == "error" and event["error"]["event_id"] == name:
                if event["error"]["code"] == ErrorCode.UNSUPPORTED:
                    return False
                # Too many answers at once: those of before have to end first.
                self.send(request)
            if event["type"] != "response.done":
                continue
            done = event["response"]
            if (done["metadata"] or {}).get("probe") == name:
                assert done["status"] == "completed", done
                assert done["output"][0]["content"][0]["text"] == ANSWER, done
                return True

    async def _event(self) -> dict[str, Any]:
        event = await self._event_or_end()
        assert event["type"] != "goodbye", event
        return event

    async def _event_or_end(self) -> dict[str, Any]:
        while True:
            frame = await self.peer.frame()
            if frame.opcode == CLOSE:
                return {"type": "goodbye", "code": frame.code}
            if frame.opcode in (TEXT, BINARY):
                assert (frame.opcode == TEXT) == (self._encoding == "json")
                decode = json.loads if self._encoding == "json" else msgspec.msgpack.decode
                event: dict[str, Any] = decode(frame.payload)
                if event["type"] == "error":
                    assert event["error"]["code"] in set(ErrorCode), event
                return event
            assert frame.opcode in (PING, 10), frame


async def fuzz_sockets(folder: Path, key: tuple[Family, Encoding], messages: int, seed: int) -> int:
    """Send so many messages; returns how many connections it took.

    Args:
        folder: An empty one that is on the search path of this process.
    """
    family, encoding = key
    mutator = Mutator([*MESSAGES["realtime"], *MESSAGES[family]], seed, encoding)
    dice = random.Random(seed)
    connections, left = 0, messages
    with capture_logs() as logs:
        async with (
            talking_gateway(talking_settings(folder)) as gateway,
            connected(gateway.port) as quiet,
        ):
            other = Caller(quiet, "realtime", "json")
            await other.open()
            while left:
                async with connected(gateway.port) as peer:
                    caller = Caller(peer, family, encoding)
                    await caller.open()
                    connections += 1
                    while left:
                        batch = min(left, PROBE_EVERY)
                        left -= batch
                        for _ in range(batch):
                            _send(peer, mutator.message(), dice)
                            await peer.writer.drain()
                        if not await caller.probe():
                            break
            # Somebody else's call has noticed nothing.
            assert await other.probe()
    assert [each for each in logs if each["log_level"] in ("error", "critical")] == []
    return connections


def _send(peer: RawWebSocket, message: bytes, dice: random.Random) -> None:
    """In one frame of either kind, or in several with a ping between."""
    kind = dice.choice((TEXT, TEXT, TEXT, BINARY))
    if dice.random() < 0.9 or len(message) < 2:
        peer.send(kind, message)
        return
    cut = dice.randrange(1, len(message))
    peer.send(kind, message[:cut], fin=False)
    peer.send(PING, b"still there?")
    peer.send(CONTINUATION, message[cut:])


def _text(words: str) -> dict[str, str]:
    return {"type": "input_text", "text": words}


async def fuzz_first_messages(
    folder: Path, key: tuple[Family, Encoding], connections: int, seed: int
) -> int:
    """Let so many connections begin with mutated messages; returns how many became calls.

    For dialects in which the client's first message opens the session.
    """
    family, encoding = key
    mutator = Mutator([*MESSAGES["realtime"], *MESSAGES[family] * 2], seed, encoding)
    calls = 0
    with capture_logs() as logs:
        async with talking_gateway(talking_settings(folder)) as gateway:
            for _ in range(connections):
                async with connected(gateway.port) as peer:
                    caller = Caller(peer, family, encoding)
                    await caller.connect()
                    for _ in range(3):
                        peer.send(TEXT if encoding == "json" else BINARY, mutator.message())
                    calls += await caller.describe()
    assert [each for each in logs if each["log_level"] in ("error", "critical")] == []
    return calls
