"""Mutated messages on live sessions: ``python -m tests.faults.fuzz --messages 100000``.

Each message goes through the connection, its dialect and the session machine, as one from a
socket would; the engine, the plugin and time are fakes. After each one nothing may have crashed,
and what is refused has one error with a stable code; now and then a whole turn must still work.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from structlog.testing import capture_logs

from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.gateway.ws.channel import OnMessage
from duologue.gateway.ws.connection import Connection
from duologue.protocol.dialect import Dialect
from duologue.protocol.dialects import DIALECTS, Family
from duologue.protocol.errors import MAX_MESSAGE_CHARS, ErrorCode
from duologue.protocol.limits import MAX_SERVER_MESSAGE_BYTES
from tests.cases.talk import DETECTING, Talk, pcm
from tests.conformance.sdk_schema import BETA, GA, SdkSchema
from tests.fakes.plugin import STAGE
from tests.faults.fuzz_sockets import fuzz_sockets
from tests.faults.good_messages import ITEM, MESSAGES, RESPONSE
from tests.faults.mutator import Mutator

MESSAGES_OF_A_SESSION = 400
PROBE_EVERY = 50
ENGINE_SPEAKS_EVERY = 7
STEP_S = 0.05
SCHEMAS: dict[Family, SdkSchema] = {"realtime": GA, "beta": BETA}

PLAIN_SESSION = {
    "type": "session.update",
    "session": {
        "type": "realtime",
        "output_modalities": ["audio"],
        "max_output_tokens": None,
        "tools": [],
        "tool_choice": None,
        "audio": {
            "input": {
                "format": {"type": "audio/pcm", "rate": 24000},
                "turn_detection": None,
                "transcription": None,
            },
            "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": None},
        },
    },
}


class Peer:
    """The other end of a connection, as the connection sees it: a channel that takes everything."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed: tuple[int, str] | None = None
        self.say: OnMessage = lambda _message: None
        self._over = asyncio.Event()

    async def run(self, on_message: OnMessage) -> None:
        self.say = on_message
        await self._over.wait()

    def can_send(self) -> bool:
        return self.closed is None

    def send(self, message: bytes) -> None:
        self.sent.append(message)

    send_binary = send

    async def writable(self) -> bool:
        return self.can_send()

    def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)

    def expire(self) -> None:
        """Nothing: a test does not wait."""

    async def finish(self) -> None:
        """Nothing is on its way."""

    def release(self) -> None:
        """Nothing is held."""

    def hang_up(self) -> None:
        self._over.set()

    def take(self) -> list[bytes]:
        """What was sent since the last look."""
        sent, self.sent = self.sent, []
        return sent


class Victim:
    """One live session, and what its client sees."""

    def __init__(self, dialect: Dialect, schema: SdkSchema) -> None:
        self.talk = Talk((*DETECTING, "end_of_turn"))
        self.peer = Peer()
        self.connection = Connection(self.peer, self.talk.session, dialect)  # type: ignore[arg-type]
        self._schema = schema
        self._ids = {ITEM: b"item_1", RESPONSE: b"resp_1"}

    def tell(self, message: bytes) -> list[dict[str, Any]]:
        """Send a message, and return all that it led to at once."""
        for name, live in self._ids.items():
            message = message.replace(name.encode(), live)
        self.peer.say(message)
        return list(self._seen())

    def send(self, **event: Any) -> list[dict[str, Any]]:
        """Send an event."""
        return self.tell(json.dumps(event).encode())

    def pass_time(self) -> list[dict[str, Any]]:
        self.talk.clock.advance(STEP_S)
        return list(self._seen())

    def let_the_engine_speak(self) -> list[dict[str, Any]]:
        """Every answer says a little and is done; what was cancelled is gone."""
        engine = self.talk.engine
        for fake in engine.of(STAGE):
            if not fake.cancelled and fake.request.id in engine.running:
                engine.output(fake.request.id, TextDelta("fine"))
                engine.output(fake.request.id, AudioChunk(pcm(100), 24000))
        for fake in [*engine.running.values()]:
            if fake.cancelled:
                engine.acknowledge_cancel(fake.request.id)
            elif fake.request.pipeline == STAGE:
                engine.complete(fake.request.id)
        return list(self._seen())

    def probe(self) -> None:
        """Hold a whole turn."""
        if self.talk.machine.config.kind == "transcription":
            return
        events = self.tell(json.dumps(PLAIN_SESSION).encode())
        assert "session.updated" in {e["type"] for e in events}, events
        self.send(type="input_audio_buffer.clear")
        self.send(type="response.cancel")
        self.let_the_engine_speak()
        self.talk.play_to_the_end()
        self.peer.take()
        audio = base64.b64encode(pcm(600)).decode()
        events = self.send(type="input_audio_buffer.append", audio=audio)
        events += self.send(type="input_audio_buffer.commit")
        events += self.send(type="response.create")
        events += self.let_the_engine_speak()
        self.talk.play_to_the_end()
        events += self._seen()
        done = [e["response"]["status"] for e in events if e["type"] == "response.done"]
        errors = [e for e in events if e["type"] == "error"]
        assert errors == [], errors
        assert done == ["completed"], str(events)[-2000:]

    def _seen(self) -> Iterator[dict[str, Any]]:
        for message in self.peer.take():
            assert len(message) < MAX_SERVER_MESSAGE_BYTES, message[:500]
            event = json.loads(message)
            assert event["type"] in self._schema.kinds, event
            if event["type"] == "response.output_item.added":
                self._ids[ITEM] = event["item"]["id"].encode()
                self._ids[RESPONSE] = event["response_id"].encode()
            yield event


@asynccontextmanager
async def victim(family: Family) -> AsyncIterator[Victim]:
    """Open a session, and let it go."""
    found = Victim(DIALECTS[family, "json"], SCHEMAS[family])
    task = asyncio.create_task(found.connection.run())
    await asyncio.sleep(0)
    try:
        yield found
    finally:
        found.peer.hang_up()
        await task
        assert len(found.talk.manager) == 0


def judge(message: bytes, events: list[dict[str, Any]]) -> str:
    """Check the answer to one message; returns the code of its refusal, or "taken"."""
    errors = [event["error"] for event in events if event["type"] == "error"]
    assert len(errors) <= 1, (message[:500], errors)
    for error in errors:
        assert error["code"] in set(ErrorCode), error
        assert error["type"] == "invalid_request_error" or error["code"] == "rate_limited", error
        assert 0 < len(error["message"]) <= MAX_MESSAGE_CHARS, error
        return str(error["code"])
    return "taken"


async def fuzz(family: Family, messages: int, seed: int) -> Counter[str]:
    """Send so many messages; returns how often each code refused one."""
    found: Counter[str] = Counter()
    corpus = [message for each in MESSAGES.values() for message in each]
    mutator = Mutator([*corpus, *MESSAGES[family] * 2], seed)
    with capture_logs() as logs:
        while (left := messages - found.total()) > 0:
            async with victim(family) as session:
                for number in range(1, min(left, MESSAGES_OF_A_SESSION) + 1):
                    message = mutator.message()
                    try:
                        found[_check(session, message, number)] += 1
                        assert [e for e in logs if e["log_level"] in ("error", "critical")] == []
                    except BaseException as exc:
                        exc.add_note(f"{found.total() + 1}. of seed {seed}: {message[:2000]!r}")
                        raise
                    logs.clear()
                    if session.talk.machine.config.kind == "transcription":
                        break  # from there is no way back
                session.probe()
    return found


def _check(session: Victim, message: bytes, number: int) -> str:
    machine = session.talk.machine
    before = machine.config
    answer = judge(message, session.tell(message))
    assert session.peer.closed is None, session.peer.closed
    assert machine.ended is None, machine.ended
    assert answer == "taken" or machine.config is before, "half applied"
    session.pass_time()
    if number % ENGINE_SPEAKS_EVERY == 0:
        session.let_the_engine_speak()
    if number % PROBE_EVERY == 0:
        session.probe()
    return answer


def main() -> None:
    """Fuzz every dialect, and print how often each code came."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000, help="over all dialects")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sockets", type=int, default=4_000, help="messages through real sockets")
    options = parser.parse_args()
    for family in SCHEMAS:
        started = perf_counter()
        count = options.messages // len(SCHEMAS)
        found = asyncio.run(fuzz(family, count, options.seed))
        took_s = perf_counter() - started
        sys.stdout.write(f"{family}: {count} messages in {took_s:.0f} s, no crash\n")
        for code, times in found.most_common():
            sys.stdout.write(f"  {times:>7} {code}\n")
        with TemporaryDirectory() as folder:
            sys.path.insert(0, folder)
            count = options.sockets // len(SCHEMAS)
            asyncio.run(fuzz_sockets(Path(folder), family, count, options.seed))
            sys.path.remove(folder)
        sys.stdout.write(f"{family}: {count} messages through sockets, no crash\n")


if __name__ == "__main__":
    main()
