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
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, TypeAlias, get_args

import msgspec
from structlog.testing import capture_logs

from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.gateway.beside_loop import LARGE_BYTES
from duologue.gateway.ws.channel import OnMessage
from duologue.gateway.ws.connection import Connection
from duologue.protocol.dialect import Encoding, Family
from duologue.protocol.dialects import DIALECTS
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.errors import MAX_MESSAGE_CHARS, ErrorCode
from duologue.protocol.events import Event
from duologue.protocol.limits import MAX_SERVER_MESSAGE_BYTES
from duologue.protocol.session_patch import SessionPatch
from tests.cases.talk import DETECTING, pcm
from tests.conformance.sdk_schema import BETA, GA
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin
from tests.faults.fuzz_sockets import fuzz_sockets
from tests.faults.good_messages import ITEM, MESSAGES, RESPONSE
from tests.faults.mutator import Mutator

MESSAGES_OF_A_SESSION = 400
PROBE_EVERY = 50
ENGINE_SPEAKS_EVERY = 7
STEP_S = 0.05
LONG_S = 20.0
"""More than all that is said takes to be heard."""

DialectKey: TypeAlias = tuple[Family, Encoding]
NAMES: Mapping[Family, Collection[str]] = {
    "realtime": GA.kinds,
    "beta": BETA.kinds,
    "duplex": {kind.__struct_config__.tag for kind in get_args(Event)},
}
"""The events that a client of each family may be sent."""

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
        self.reading = asyncio.Event()
        """It is read from; not so while a large message is being dealt with."""

        self.reading.set()
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

    def hold(self, on: bool) -> None:
        if on:
            self.reading.clear()
        else:
            self.reading.set()

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

    def __init__(self, key: DialectKey) -> None:
        self.family, self.encoding = key
        self.talk = FakeCall(
            FakePlugin(),
            FakeEngine(pipelines=(*DETECTING, "end_of_turn")),
            patch=DuplexPatch() if self.family == "duplex" else SessionPatch(),
        )
        self.peer = Peer()
        self.connection = Connection(self.peer, self.talk.session, DIALECTS[key])  # type: ignore[arg-type]
        self._ids = {ITEM: b"item_1", RESPONSE: b"resp_1"}

    def tell(self, message: bytes) -> list[dict[str, Any]]:
        """Send a message, and return all that it led to at once."""
        assert len(message) <= LARGE_BYTES, "use ``tell_at_length``"
        self.peer.say(self._with_live_ids(message))
        return list(self._seen())

    async def tell_at_length(self, message: bytes) -> list[dict[str, Any]]:
        """Send a message of any size, and return all that it led to."""
        self.peer.say(self._with_live_ids(message))
        await self.peer.reading.wait()
        return list(self._seen())

    def send(self, **event: Any) -> list[dict[str, Any]]:
        """Send an event."""
        return self.tell(self._in_json_or_msgpack(event))

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
        if self.talk.machine.config.kind == "transcription" or self.talk.machine.ended:
            return
        events = self.send(**PLAIN_SESSION)
        assert "session.updated" in {e["type"] for e in events}, events
        self.send(type="input_audio_buffer.clear")
        self.send(type="response.cancel")
        self.let_the_engine_speak()
        self.talk.clock.advance(LONG_S)
        self.peer.take()
        if self.family == "duplex":
            # There the server finds turns, and this person has not been heard.
            events = self.send(type="input.text.append", text="hello")
        else:
            audio: str | bytes = pcm(600)
            if self.encoding == "json":
                audio = base64.b64encode(pcm(600)).decode()
            events = self.send(type="input_audio_buffer.append", audio=audio)
            events += self.send(type="input_audio_buffer.commit")
        events += self.send(type="response.create")
        events += self.let_the_engine_speak()
        self.talk.clock.advance(LONG_S)
        events += self._seen()
        done = [e["response"]["status"] for e in events if e["type"] == "response.done"]
        errors = [e for e in events if e["type"] == "error"]
        assert errors == [], errors
        assert done == ["completed"], str(events)[-2000:]

    def _with_live_ids(self, message: bytes) -> bytes:
        for name, live in self._ids.items():
            message = message.replace(name.encode(), live)
        return message

    def _seen(self) -> Iterator[dict[str, Any]]:
        for message in self.peer.take():
            assert len(message) < MAX_SERVER_MESSAGE_BYTES, message[:500]
            decode = json.loads if self.encoding == "json" else msgspec.msgpack.decode
            event = decode(message)
            assert event["type"] in NAMES[self.family], event
            if event["type"] == "response.output_item.added":
                self._ids[ITEM] = event["item"]["id"].encode()
                self._ids[RESPONSE] = event["response_id"].encode()
            yield event

    def _in_json_or_msgpack(self, event: dict[str, Any]) -> bytes:
        if self.encoding == "json":
            return json.dumps(event).encode()
        return msgspec.msgpack.encode(event)


@asynccontextmanager
async def victim(key: DialectKey) -> AsyncIterator[Victim]:
    """Open a session, and let it go."""
    found = Victim(key)
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


async def fuzz(key: DialectKey, messages: int, seed: int) -> Counter[str]:
    """Send so many messages; returns how often each code refused one."""
    found: Counter[str] = Counter()
    corpus = [message for each in MESSAGES.values() for message in each]
    family, encoding = key
    mutator = Mutator([*corpus, *MESSAGES[family] * 2], seed, encoding)
    with capture_logs() as logs:
        while (left := messages - found.total()) > 0:
            async with victim(key) as session:
                for number in range(1, min(left, MESSAGES_OF_A_SESSION) + 1):
                    message = mutator.message()
                    try:
                        found[await _check(session, message, number)] += 1
                        assert [e for e in logs if e["log_level"] in ("error", "critical")] == []
                    except BaseException as exc:
                        exc.add_note(f"{found.total() + 1}. of seed {seed}: {message[:2000]!r}")
                        raise
                    logs.clear()
                    config = session.talk.machine.config
                    if config.kind == "transcription" or session.talk.machine.ended:
                        break  # from there is no way back
                session.probe()
    return found


async def _check(session: Victim, message: bytes, number: int) -> str:
    machine = session.talk.machine
    before = machine.config
    answer = judge(message, await session.tell_at_length(message))
    if machine.ended is not None:
        # Only at the client's own word.
        assert machine.ended not in set(ErrorCode), machine.ended
        assert b"close" in message
        return answer
    assert session.peer.closed is None, session.peer.closed
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
    for key in DIALECTS:
        name = " ".join(key)
        started = perf_counter()
        count = options.messages // len(DIALECTS)
        found = asyncio.run(fuzz(key, count, options.seed))
        took_s = perf_counter() - started
        sys.stdout.write(f"{name}: {count} messages in {took_s:.0f} s, no crash\n")
        for code, times in found.most_common():
            sys.stdout.write(f"  {times:>7} {code}\n")
        with TemporaryDirectory() as folder:
            sys.path.insert(0, folder)
            count = options.sockets // len(DIALECTS)
            asyncio.run(fuzz_sockets(Path(folder), key, count, options.seed))
            sys.path.remove(folder)
        sys.stdout.write(f"{name}: {count} messages through sockets, no crash\n")


if __name__ == "__main__":
    main()
