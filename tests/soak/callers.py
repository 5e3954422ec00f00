"""Callers of all kinds, each for one short life: they talk, interrupt, drop, come back, check."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import aiohttp

from duologue.codecs.containers.wav import wav_header
from duologue.gateway.http.settings import HttpSettings
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps
from tests.patience import PATIENCE_S
from tests.soak.counting_voice import Count
from tests.soak.readings import Drift
from tests.unit.gateway.raw_websocket import CLOSE, PING, PONG, TEXT, RawWebSocket, connected

FRAME_BYTES = BEEP_RATE_HZ * 2 * 40 // 1000
PHRASES = tuple(
    f"{one} {two}" for one in ("hello", "again", "weather") for two in ("hello", "again")
)
LOST_WORK = {"replica_lost", "stage_failed", "stage_timeout"}
"""Why an answer may fail: somebody kills models meanwhile."""

HTTP_PATIENCE_S = HttpSettings().silence_timeout_s + PATIENCE_S
"""The server gives a silent model up, and says so: whoever hears nothing by then is forgotten."""

LEAD_S = 1.0
"""What the server sends ahead of playback."""


GA_PATH = "/v1/realtime?model=m"
DUPLEX_PATH = "/v1/duplex?model=m&autostart=0"


@dataclass
class Tally:
    """What all callers have seen."""

    counts: Counter[str] = field(default_factory=Counter)
    drifts_s: list[float] = field(default_factory=list)
    slowest_http_s: float = 0.0


def possible_questions(said: Sequence[str]) -> Iterator[str]:
    """What an answer may be to: the last turn, with those before that got no answer.

    Words are missing of turns whose recogniser was killed.
    """
    *before, last = said
    for number in range(len(before) + 1):
        for answered_now in combinations(before, number):
            yield " ".join((*answered_now, last))


class Answers:
    """What a caller is told, and the sound of the answer that is being said."""

    def __init__(self, tally: Tally) -> None:
        self._said: list[str] = []
        self._tally = tally
        self._count = Count()
        self.response_id = ""
        self._over: set[str] = set()
        self.latest: deque[str] = deque(maxlen=40)
        """Kinds of what came, to be told where something is missing."""

    def said(self, phrase: str) -> None:
        """The caller says something: the next answer is to that."""
        self._said.append(phrase)

    def see(self, event: dict[str, Any]) -> None:
        """Check one event."""
        self.latest.append(event["type"])
        match event["type"]:
            case "error":
                # It was over when its cancel came: its model was killed just before.
                assert event["error"]["code"] == "response_cancel_not_active", event
            case "response.created":
                assert not self.response_id, "an answer before the end of the one before"
                self.response_id = event["response"]["id"]
                self._count = Count(*possible_questions(self._said))
            case "response.output_audio.delta":
                # An answer that was stopped is over: not a byte of it may follow.
                assert event["response_id"] not in self._over, "stale sound"
                assert event["response_id"] == self.response_id
                self._count.read(base64.b64decode(event["delta"]))
                self._tally.counts["audio_bytes"] += len(event["delta"]) * 3 // 4
            case "response.done":
                self._done(event["response"])
            case _:
                pass

    def _done(self, response: dict[str, Any]) -> None:
        assert response["id"] == self.response_id
        self._over.add(self.response_id)
        self.response_id = ""
        status, details = response["status"], response["status_details"] or {}
        reason = details.get("reason") or ""
        if status == "failed":
            assert reason in LOST_WORK, response
        self._tally.counts[f"answers {status} {reason}".strip()] += 1
        if status == "completed":
            transcript = response["output"][0]["content"][0]["transcript"]
            assert self._said[-1] in transcript or self._said[-2] in transcript


class SoakCall:
    """One connection of a caller."""

    def __init__(self, line: RawWebSocket, answers: Answers) -> None:
        line.patience_s = PATIENCE_S
        self.line = line
        self.answers = answers

    async def event(self) -> dict[str, Any]:
        """The next event, checked; pings are answered."""
        while True:
            try:
                frame = await self.line.frame()
            except TimeoutError:
                raise AssertionError(f"nothing comes after {self.answers.latest}") from None
            if frame.opcode == PING:
                self.line.send(PONG, frame.payload)
                continue
            assert frame.opcode == TEXT, (frame.opcode, frame.payload[:80])
            event: dict[str, Any] = json.loads(frame.payload)
            self.answers.see(event)
            return event

    async def until(self, *kinds: str) -> dict[str, Any]:
        """Read until one of some events."""
        while (event := await self.event())["type"] not in kinds:
            pass
        return event

    def send(self, **event: Any) -> None:
        self.line.send_event(event)

    async def say(self, phrase: str, hush_ms: int = 800) -> None:
        """Say words, and be silent; the time of it goes by at once."""
        self.answers.said(phrase)
        pcm = beeps(phrase) + bytes(BEEP_RATE_HZ * 2 * hush_ms // 1000)
        for start in range(0, len(pcm), FRAME_BYTES):
            audio = base64.b64encode(pcm[start : start + FRAME_BYTES]).decode()
            self.send(type="input_audio_buffer.append", audio=audio)
        await self.line.writer.drain()


async def talk(port: int, chance: random.Random, tally: Tally) -> None:
    """Some turns of the Realtime API, some of them interrupted by voice or by command."""
    async with connected(port) as line:
        call = SoakCall(line, Answers(tally))
        await line.upgrade(GA_PATH)
        detection = {"type": "server_vad", "silence_duration_ms": 400}
        audio = {"input": {"turn_detection": detection, "transcription": {"model": "m"}}}
        call.send(type="session.update", session={"type": "realtime", "audio": audio})
        await call.until("session.updated")
        for _ in range(chance.randrange(1, 4)):
            await _turn(call, chance, tally)
        tally.counts["calls"] += 1
        if chance.random() < 0.5:
            line.close()
            while (await line.frame()).opcode != CLOSE:
                pass
        else:
            chance.choice((line.reset, line.finish))()


async def _turn(call: SoakCall, chance: random.Random, tally: Tally) -> None:
    way = chance.choice(("whole", "whole", "cancel", "interrupt"))
    phrase = chance.choice(PHRASES)
    await call.say(phrase if way == "whole" else f"{phrase} long")
    if way == "whole":
        await call.until("response.done")
        return
    event = await call.until("response.output_audio.delta", "response.done")
    if event["type"] == "response.done":
        return
    if way == "cancel":
        call.send(type="response.cancel")
        event = await call.until("response.done")
        tally.counts["cancels"] += 1
        if event["response"]["status"] != "cancelled":
            await call.until("error")
        return
    # A model may be killed just now; then the answer is over by itself.
    await call.say("hello again hello")
    await call.until("response.done")
    tally.counts["interruptions"] += 1
    await call.until("response.done")


async def drop_and_come_back(port: int, chance: random.Random, tally: Tally) -> None:
    """A duplex call whose line breaks in every way, in the midst of answers; nothing is missing."""
    phrase = f"{chance.choice(PHRASES)} long"
    answers = Answers(tally)
    answers.said(phrase)
    caller = _Returning(port, chance, tally, answers)
    try:
        await caller.open()
        await caller.ask(beeps(phrase))
        done = False
        for _ in range(chance.randrange(1, 4)):
            for _ in range(chance.randrange(1, 12)):
                done = (await caller.event())["type"] == "response.done"
                if done:
                    break
            if done:
                break
            await caller.lose_line()
        while not done:
            done = (await caller.event())["type"] == "response.done"
        await caller.close()
        tally.counts["calls"] += 1
    finally:
        await caller.hang_up()


class _Returning:
    """A caller of the duplex dialect, over as many connections as it takes."""

    def __init__(self, port: int, chance: random.Random, tally: Tally, answers: Answers) -> None:
        self._port = port
        self._chance = chance
        self._tally = tally
        self._answers = answers
        self._id = self._token = ""
        self._received = 0
        self._said = b""
        self._lines: list[Any] = []
        self._call: SoakCall | None = None

    async def open(self) -> None:
        call = await self._connect()
        pcm = {"format": {"type": "audio/pcm", "rate": BEEP_RATE_HZ}}
        session = {"turn_detection": None, "audio": {"input": pcm, "output": pcm}}
        call.send(type="session.update", session=session)
        await self._until("session.updated")

    async def ask(self, pcm: bytes) -> None:
        self._said = pcm
        await self._speak(0)
        assert self._call is not None
        self._call.send(type="input_audio_buffer.commit", response_create=False)
        await self._until("input_audio_buffer.committed")
        self._call.send(type="response.create")
        # What a line loses on its way up is no event that could come again.
        await self._until("response.created")

    async def event(self) -> dict[str, Any]:
        assert self._call is not None
        event = await self._call.event()
        seq = event.get("server_event_seq")
        if seq is not None:
            assert seq == self._received + 1, f"event {seq} follows {self._received}"
            self._received = seq
            if self._chance.random() < 0.3:
                self._call.send(type="session.event_ack", server_event_seq=seq)
        if "resume_token" in event:
            self._id, self._token = event["session"]["id"], event["resume_token"]
        return event

    async def lose_line(self) -> None:
        """Break the line, and go on on another one."""
        assert self._call is not None
        line = self._call.line
        # A black hole: nobody reads, nobody closes, and the next line takes over.
        way = self._chance.choice((line.reset, line.finish, line.stop_reading))
        way()
        self._tally.counts[f"lines {way.__name__}"] += 1
        await asyncio.sleep(self._chance.uniform(0, 0.3))
        call = await self._connect()
        call.send(
            type="session.resume",
            session_id=self._id,
            resume_token=self._token,
            last_received_server_event_seq=self._received,
        )
        greeting = await self.event()
        assert greeting["type"] == "session.resumed", greeting
        self._tally.counts["resumes"] += 1
        await self._speak(greeting["next_sample"])

    async def close(self) -> None:
        assert self._call is not None
        self._call.send(type="session.close")
        await self._until("session.closed")

    async def hang_up(self) -> None:
        for context in reversed(self._lines):
            await context.__aexit__(None, None, None)

    async def _connect(self) -> SoakCall:
        context = connected(self._port)
        line = await context.__aenter__()
        self._lines.append(context)
        await line.upgrade(DUPLEX_PATH)
        self._call = SoakCall(line, self._answers)
        return self._call

    async def _speak(self, start_sample: int) -> None:
        assert self._call is not None
        for start in range(2 * start_sample, len(self._said), FRAME_BYTES):
            audio = base64.b64encode(self._said[start : start + FRAME_BYTES]).decode()
            self._call.send(type="input_audio_buffer.append", audio=audio, start_sample=start // 2)

    async def _until(self, kind: str) -> None:
        while (await self.event())["type"] != kind:
            pass


async def listen_steadily(port: int, chance: random.Random, tally: Tally) -> None:
    """A long answer of a model that nobody kills: is it sent in pace with playback to its end?"""
    async with connected(port) as line:
        await line.upgrade("/v1/realtime?model=steady")
        drift, position_s = Drift(LEAD_S), 0.0
        audio = {"input": {"turn_detection": None}}
        line.send_event({"type": "session.update", "session": {"type": "realtime", "audio": audio}})
        line.send_event({"type": "response.create"})
        while True:
            frame = await line.frame()
            if frame.opcode == PING:
                line.send(PONG, frame.payload)
                continue
            event = json.loads(frame.payload)
            if event["type"] == "response.output_audio.delta":
                drift.note(time.monotonic(), position_s)
                position_s += len(base64.b64decode(event["delta"])) / 2 / 24_000
            if event["type"] == "response.done":
                assert event["response"]["status"] == "completed", event
                break
        tally.drifts_s.append(drift.seconds())
        tally.counts["gaps of steady answers"] += drift.gaps
        tally.counts["steady answers"] += 1


async def ask_over_http(port: int, chance: random.Random, tally: Tally) -> None:
    """Requests of every kind, some of them left in the middle."""
    url = f"http://127.0.0.1:{port}/v1"
    async with _client() as client:
        for _ in range(3):
            phrase = chance.choice(PHRASES)
            began = time.monotonic()
            match chance.randrange(3):
                case 0:
                    await _ask_for_speech(client, url, phrase, chance, tally)
                case 1:
                    pcm = beeps(phrase) + bytes(BEEP_RATE_HZ)
                    wav = wav_header(BEEP_RATE_HZ, len(pcm)) + pcm
                    form = aiohttp.FormData({"model": "m"})
                    form.add_field("file", wav, filename="said.wav")
                    async with client.post(f"{url}/audio/transcriptions", data=form) as answer:
                        if _is_served(answer, tally):
                            assert (await answer.json())["text"] == phrase
                case _:
                    message = {"role": "user", "content": phrase}
                    body = {"model": "m", "messages": [message]}
                    async with client.post(f"{url}/chat/completions", json=body) as answer:
                        if _is_served(answer, tally):
                            told = (await answer.json())["choices"][0]["message"]["content"]
                            assert phrase in told
            took_s = time.monotonic() - began
            tally.slowest_http_s = max(tally.slowest_http_s, took_s)


async def _ask_for_speech(
    client: aiohttp.ClientSession, url: str, phrase: str, chance: random.Random, tally: Tally
) -> None:
    text = f"Well, you said {phrase}."
    body = {"model": "m", "input": text, "voice": "alloy", "response_format": "pcm"}
    async with client.post(f"{url}/audio/speech", json=body) as answer:
        if not _is_served(answer, tally):
            return
        if chance.random() < 0.3:
            answer.close()
            tally.counts["http left"] += 1
            return
        count = Count(phrase)
        try:
            async for piece in answer.content.iter_any():
                count.read(piece)
        except aiohttp.ClientPayloadError:
            tally.counts["http broken off"] += 1  # its model was killed


def _is_served(answer: aiohttp.ClientResponse, tally: Tally) -> bool:
    tally.counts[f"http {answer.status}"] += 1
    assert answer.status in (200, 500, 503, 504), answer.status
    return answer.status == 200


@asynccontextmanager
async def _client() -> AsyncIterator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=HTTP_PATIENCE_S)
    async with aiohttp.ClientSession(timeout=timeout) as client:
        yield client


LIVES = (talk, talk, drop_and_come_back, drop_and_come_back, ask_over_http)
"""What callers do, as often as they stand here."""
