"""Mutated messages through real sockets, to a real gateway whose models are scripted.

A smaller part of the fuzzing: what the parts in between could spoil, frames, backlogs, logs.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from duologue.protocol.dialects import Family
from duologue.protocol.errors import ErrorCode
from tests.conformance.talking_gateway import (
    API_KEY,
    TalkingGateway,
    talking_gateway,
    talking_settings,
)
from tests.faults.good_messages import MESSAGES
from tests.faults.mutator import Mutator
from tests.unit.gateway.raw_websocket import (
    BINARY,
    CONTINUATION,
    PING,
    TEXT,
    RawWebSocket,
    connected,
)

PROBE_EVERY = 100
HEADERS: dict[Family, dict[str, str]] = {
    "realtime": {},
    "beta": {"OpenAI-Beta": "realtime=v1"},
}
ANSWER = "Well, you said hello."


class Caller:
    """One connection, and what it expects to live through."""

    def __init__(self, peer: RawWebSocket) -> None:
        self.peer = peer
        self._probes = 0

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
        self.peer.send_event(request)
        while True:
            event = await self._event()
            if event["type"] == "error" and event["error"]["event_id"] == name:
                if event["error"]["code"] == ErrorCode.UNSUPPORTED:
                    return False
                # Too many answers at once: those of before have to end first.
                self.peer.send_event(request)
            if event["type"] != "response.done":
                continue
            done = event["response"]
            if (done["metadata"] or {}).get("probe") == name:
                assert done["status"] == "completed", done
                assert done["output"][0]["content"][0]["text"] == ANSWER, done
                return True

    async def _event(self) -> dict[str, Any]:
        while True:
            frame = await self.peer.frame()
            if frame.opcode == TEXT:
                event: dict[str, Any] = json.loads(frame.payload)
                if event["type"] == "error":
                    assert event["error"]["code"] in set(ErrorCode), event
                return event
            assert frame.opcode in (PING, 10), frame


async def fuzz_sockets(folder: Path, family: Family, messages: int, seed: int) -> int:
    """Send so many messages; returns how many connections it took.

    Args:
        folder: An empty one that is on the search path of this process.
    """
    mutator = Mutator([*MESSAGES["realtime"], *MESSAGES[family]], seed)
    dice = random.Random(seed)
    connections, left = 0, messages
    with capture_logs() as logs:
        async with talking_gateway(talking_settings(folder)) as gateway, _caller(gateway) as other:
            await _open(other, {})
            while left:
                async with _caller(gateway) as peer:
                    await _open(peer, HEADERS[family])
                    connections += 1
                    caller = Caller(peer)
                    while left:
                        batch = min(left, PROBE_EVERY)
                        left -= batch
                        for _ in range(batch):
                            _send(peer, mutator.message(), dice)
                            await peer.writer.drain()
                        if not await caller.probe():
                            break
            # Somebody else's call has noticed nothing.
            assert await Caller(other).probe()
    assert [each for each in logs if each["log_level"] in ("error", "critical")] == []
    return connections


def _caller(gateway: TalkingGateway) -> Any:
    return connected(gateway.port)


async def _open(peer: RawWebSocket, headers: dict[str, str]) -> None:
    bearer = {"Authorization": f"Bearer {API_KEY}"}
    await peer.upgrade("/v1/realtime?model=m", **bearer, **headers)
    assert (await peer.event())["type"] == "session.created"


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
