"""The barest server that holds a Realtime call: loudness decides, the answer is a fixed tone.

A control for the measurements of whole calls: what is left of an interruption's time when there
is nothing between "speech is confirmed" and "no more audio" but one event loop and one socket.
"""

import argparse
import asyncio
import json
import math
import operator
import signal
from array import array

import pybase64
import uvloop
from aiohttp import WSMsgType, web

SAMPLE_RATE_HZ = 24_000
DELTA_S = 0.04
LOUD = 300.0
CONFIRM_S = 0.2
END_S = 0.4
TEXT = "This is a tone that goes on for a while."


def tone(seconds: float) -> bytes:
    samples = range(int(seconds * SAMPLE_RATE_HZ))
    step = 2 * math.pi * 440 / SAMPLE_RATE_HZ
    return array("h", [int(6000 * math.sin(step * i)) for i in samples]).tobytes()


class Caller:
    """One call: listens, answers once per turn, stops when it is talked over."""

    def __init__(self, socket: web.WebSocketResponse, answer: bytes, group: asyncio.TaskGroup):
        self._socket = socket
        self._answer = answer
        self._group = group
        self._loud_s = self._quiet_s = 0.0
        self._speaking = False
        self._turn = 0
        self._answering: asyncio.Task[None] | None = None

    async def send(self, event_type: str, **fields: object) -> None:
        event = {"type": event_type, "event_id": "event", **fields}
        await self._socket.send_str(json.dumps(event))

    async def hear(self, pcm: bytes) -> None:
        samples = array("h", pcm)
        seconds = len(samples) / SAMPLE_RATE_HZ
        rms = math.sqrt(sum(map(operator.mul, samples, samples)) / max(1, len(samples)))
        self._loud_s = self._loud_s + seconds if rms > LOUD else 0.0
        self._quiet_s = 0.0 if rms > LOUD else self._quiet_s + seconds
        if not self._speaking and self._loud_s >= CONFIRM_S:
            self._speaking = True
            self._turn += 1
            await self.send("input_audio_buffer.speech_started", item_id=f"item_{self._turn}")
            await self._interrupt()
        elif self._speaking and self._quiet_s >= END_S:
            self._speaking = False
            await self.send("input_audio_buffer.speech_stopped", item_id=f"item_{self._turn}")
            self._answering = self._group.create_task(self._speak(self._turn), name="answer")

    async def _interrupt(self) -> None:
        answering, self._answering = self._answering, None
        if answering is not None and not answering.done():
            answering.cancel()
            await self._end(self._turn - 1, "cancelled")

    async def _speak(self, turn: int) -> None:
        ids = {"response_id": f"resp_{turn}", "item_id": f"answer_{turn}"}
        loop = asyncio.get_running_loop()
        await self.send("response.created", response={"id": f"resp_{turn}"})
        await self.send("response.output_audio_transcript.done", **ids, transcript=TEXT)
        size, begin = int(DELTA_S * SAMPLE_RATE_HZ) * 2, loop.time()
        for number, at in enumerate(range(0, len(self._answer), size)):
            await asyncio.sleep(max(0.0, begin + number * DELTA_S - loop.time()))
            delta = pybase64.b64encode_as_string(self._answer[at : at + size])
            await self.send("response.output_audio.delta", **ids, delta=delta)
        await self._end(turn, "completed")

    async def _end(self, turn: int, status: str) -> None:
        await self.send("response.done", response={"id": f"resp_{turn}", "status": status})


async def call(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(compress=False)
    await socket.prepare(request)
    async with asyncio.TaskGroup() as group:
        caller = Caller(socket, request.app[ANSWER], group)
        await caller.send("session.created", session={})
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                continue
            command = json.loads(message.data)
            if command["type"] == "session.update":
                await caller.send("session.updated", session={})
            elif command["type"] == "input_audio_buffer.append":
                await caller.hear(pybase64.b64decode(command["audio"]))
    return socket


ANSWER = web.AppKey("answer", bytes)


async def serve(port: int, ttl_s: int, answer_s: float) -> None:
    app = web.Application()
    app[ANSWER] = tone(answer_s)
    app.router.add_get("/v1/realtime", call)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.sleep(ttl_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ttl", type=int, default=120, help="seconds until it stops by itself")
    parser.add_argument("--answer-s", type=float, default=6.0, help="length of each answer")
    args = parser.parse_args()
    signal.alarm(args.ttl + 1)
    uvloop.run(serve(args.port, args.ttl, args.answer_s))


if __name__ == "__main__":
    main()
