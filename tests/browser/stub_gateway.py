"""A gateway with a script instead of models: it speaks the Realtime dialect and obeys the test.

A turn ends after half a second of quiet; each answer is the next one of the script. Audio runs a
little ahead of playback, so that there is something to cut. Serves the page like the real one.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import WSMsgType, web

import duologue
from tests.browser.voice import RATE_HZ, Pcm, speech

PAGE_DIR = Path(duologue.__file__).parent / "web_demo"
CHUNK_SAMPLES = RATE_HZ // 10
VOICED_RMS = 300
START_MS = 120
END_MS = 480
SERVER_VAD = {"type": "server_vad"}


@dataclass(frozen=True, slots=True)
class Turn:
    """What the person is taken to have said, and what is answered."""

    heard: str
    answer: Sequence[str]
    """Sentence by sentence; the words of each are sent just before its audio."""


@dataclass(slots=True)
class StubGateway:
    """The server, and the levers by which a test makes it misbehave."""

    script: Sequence[Turn]
    lead_s: float = 0.8
    think_s: float = 0.25
    turn_detection: Sequence[str] = ("semantic_vad", "server_vad")
    url: str = ""
    refusal: tuple[int, dict[str, Any], dict[str, str]] | None = None
    """Status, body and headers for the next calls, before the upgrade."""

    calls: list[StubCall] = field(default_factory=list)
    runner: web.AppRunner | None = None

    def refuse_calls(self, status: int, code: str, message: str, **headers: str) -> None:
        """Answer the next calls with an error instead of an upgrade."""
        body = {"error": {"type": "server_error", "code": code, "message": message, "param": None}}
        self.refusal = (status, body, headers)

    async def drop_calls(self) -> None:
        """Break every line without a word, as a crash does."""
        for call in self.calls:
            if call.transport is not None:
                call.transport.abort()

    async def stop(self) -> None:
        """End all calls and listen no more."""
        await self.drop_calls()
        if self.runner is not None:
            await self.runner.cleanup()

    async def page(self, _: web.Request) -> web.StreamResponse:
        return web.FileResponse(PAGE_DIR / "index.html")

    async def realtime(self, request: web.Request) -> web.StreamResponse:
        if self.refusal is not None:
            status, body, headers = self.refusal
            return web.json_response(body, status=status, headers=headers)
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return web.json_response({"error": {"message": "upgrade", "code": "x"}}, status=426)
        socket = web.WebSocketResponse(protocols=("realtime",), compress=False)
        await socket.prepare(request)
        number = len(self.calls) + 1
        call = StubCall(socket, number, self.script, self.lead_s, self.think_s, self.turn_detection)
        call.transport = request.transport
        self.calls.append(call)
        await call.run()
        return socket

    async def ready(self, _: web.Request) -> web.StreamResponse:
        if self.refusal is not None and self.refusal[0] == 503:
            status, body, headers = self.refusal
            return web.json_response(body, status=status, headers=headers)
        return web.json_response({"status": "ready"})

    async def models(self, _: web.Request) -> web.StreamResponse:
        return web.json_response({"object": "list", "data": [{"id": "stub", "object": "model"}]})


@dataclass(slots=True)
class StubCall:
    """One call."""

    socket: web.WebSocketResponse
    number: int
    script: Sequence[Turn]
    lead_s: float
    think_s: float
    turn_detection: Sequence[str]
    transport: asyncio.Transport | None = None
    received: list[Pcm] = field(default_factory=list)
    session: dict[str, Any] = field(
        default_factory=lambda: {"audio": {"input": {"turn_detection": SERVER_VAD}}}
    )
    counter: int = 0
    turns: int = 0
    heard_ms: float = 0
    voiced_ms: float = 0
    quiet_ms: float = 0
    speaking: str = ""
    """Item id of the turn that is being spoken."""

    answering: asyncio.Task[None] | None = None
    last_item: str | None = None

    async def run(self) -> None:
        await self.send("session.created", session={"id": "sess_1", "type": "realtime"})
        async with asyncio.TaskGroup() as tasks:
            async for message in self.socket:
                if message.type == WSMsgType.TEXT:
                    await self.receive(json.loads(message.data), tasks)
            if self.answering is not None:
                self.answering.cancel()

    async def send(self, kind: str, **fields: Any) -> None:
        self.counter += 1
        event = {"type": kind, "event_id": f"event_{self.counter}", **fields}
        if not self.socket.closed:
            await self.socket.send_str(json.dumps(event))

    async def receive(self, event: dict[str, Any], tasks: asyncio.TaskGroup) -> None:
        match event["type"]:
            case "session.update":
                await self.update(event["session"])
            case "input_audio_buffer.append":
                pcm = np.frombuffer(base64.b64decode(event["audio"]), dtype=np.int16)
                self.received.append(pcm)
                if self.session["audio"]["input"]["turn_detection"] is not None:
                    await self.detect(pcm, tasks)
            case "input_audio_buffer.commit":
                await self.commit(f"item_user_{self.number}_{self.turns}")
            case "conversation.item.create":
                self.last_item = event["item"]["id"]
                for kind in ("conversation.item.added", "conversation.item.done"):
                    await self.send(kind, item=event["item"], previous_item_id=None)
            case "conversation.item.truncate":
                fields = {key: event[key] for key in ("item_id", "content_index", "audio_end_ms")}
                await self.send("conversation.item.truncated", **fields)
            case "response.create":
                self.start_answer(tasks)
            case "response.cancel":
                await self.cancel("client_cancelled")

    async def update(self, session: dict[str, Any]) -> None:
        """Merge what this page sends; the input's turn detection is the one thing it may omit."""
        detection = session["audio"]["input"].setdefault("turn_detection", SERVER_VAD)
        if detection is not None and detection["type"] not in self.turn_detection:
            message = f"{detection['type']} is not available here"
            where = "session.audio.input.turn_detection.type"
            await self.send(
                "error", error={"code": "invalid_value", "message": message, "param": where}
            )
            return
        self.session = session
        await self.send("session.updated", session=session)

    async def detect(self, pcm: Pcm, tasks: asyncio.TaskGroup) -> None:
        duration_ms = 1000 * len(pcm) / RATE_HZ
        self.heard_ms += duration_ms
        is_voiced = np.sqrt(np.mean(pcm.astype(np.float64) ** 2)) > VOICED_RMS
        self.voiced_ms = self.voiced_ms + duration_ms if is_voiced else 0
        self.quiet_ms = 0 if is_voiced else self.quiet_ms + duration_ms
        if not self.speaking and self.voiced_ms >= START_MS:
            self.speaking = f"item_user_{self.number}_{self.turns}"
            start_ms = max(0, int(self.heard_ms - self.voiced_ms))
            await self.send(
                "input_audio_buffer.speech_started", item_id=self.speaking, audio_start_ms=start_ms
            )
            await self.cancel("turn_detected")
        elif self.speaking and self.quiet_ms >= END_MS:
            item_id, self.speaking = self.speaking, ""
            end_ms = int(self.heard_ms)
            await self.send(
                "input_audio_buffer.speech_stopped", item_id=item_id, audio_end_ms=end_ms
            )
            await self.commit(item_id)
            self.start_answer(tasks)

    async def commit(self, item_id: str) -> None:
        await self.send(
            "input_audio_buffer.committed", item_id=item_id, previous_item_id=self.last_item
        )
        self.last_item = item_id
        heard = self.script[self.turns % len(self.script)].heard
        kind = "conversation.item.input_audio_transcription"
        where = {"item_id": item_id, "content_index": 0}
        for word in _words(heard):
            await self.send(f"{kind}.delta", delta=word, **where)
        usage = {"type": "duration", "seconds": 1.0}
        await self.send(f"{kind}.completed", transcript=heard, usage=usage, **where)

    def start_answer(self, tasks: asyncio.TaskGroup) -> None:
        turn = self.script[self.turns % len(self.script)]
        self.turns += 1
        self.answering = tasks.create_task(self.answer(turn, self.turns), name="answer")

    async def cancel(self, reason: str) -> None:
        if self.answering is None or self.answering.done():
            return
        self.answering.cancel()
        await asyncio.wait([self.answering])
        details = {"type": "cancelled", "reason": reason}
        response = {
            "id": f"resp_{self.number}_{self.turns}",
            "status": "cancelled",
            "status_details": details,
        }
        await self.send("response.done", response=response)

    async def answer(self, turn: Turn, number: int) -> None:
        response = {"id": f"resp_{self.number}_{number}", "status": "in_progress"}
        item = {"id": f"item_answer_{self.number}_{number}", "type": "message", "role": "assistant"}
        where = {"response_id": response["id"], "item_id": item["id"], "content_index": 0}
        await self.send("response.created", response=response)
        await asyncio.sleep(self.think_s)
        await self.send("response.output_item.added", response_id=response["id"], item=item)
        await self.send("conversation.item.added", item=item, previous_item_id=self.last_item)
        self.last_item = item["id"]
        loop = asyncio.get_running_loop()
        started_s, sent_samples = loop.time(), 0
        for sentence in turn.answer:
            for word in _words(sentence + " "):
                await self.send("response.output_audio_transcript.delta", delta=word, **where)
            pcm = speech(sentence)
            for at in range(0, len(pcm), CHUNK_SAMPLES):
                chunk = pcm[at : at + CHUNK_SAMPLES]
                ahead_s = sent_samples / RATE_HZ - (loop.time() - started_s)
                await asyncio.sleep(max(0.0, ahead_s - self.lead_s))
                delta = base64.b64encode(chunk.tobytes()).decode()
                await self.send("response.output_audio.delta", delta=delta, **where)
                sent_samples += len(chunk)
        await self.send("response.output_audio.done", **where)
        await self.send("response.done", response={"id": response["id"], "status": "completed"})


def _words(text: str) -> list[str]:
    """Return the words with the spaces that follow them; joined they are the text."""
    parts = text.split(" ")
    return [word + " " for word in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


@asynccontextmanager
async def serve(gateway: StubGateway) -> AsyncIterator[StubGateway]:
    """Serve on a free port of this machine until the block ends."""
    for turn in gateway.script:
        for sentence in turn.answer:
            speech(sentence)  # now, so that no call has to wait for it
    app = web.Application()
    app.router.add_get("/demo/", gateway.page)
    app.router.add_get("/v1/realtime", gateway.realtime)
    app.router.add_get("/v1/models", gateway.models)
    app.router.add_get("/ready", gateway.ready)
    app.router.add_static("/demo", PAGE_DIR)
    gateway.runner = web.AppRunner(app, shutdown_timeout=0.1)
    await gateway.runner.setup()
    await web.TCPSite(gateway.runner, "127.0.0.1", 0).start()
    host, port = gateway.runner.addresses[0][:2]
    gateway.url = f"http://{host}:{port}/demo/"
    try:
        yield gateway
    finally:
        await gateway.stop()
