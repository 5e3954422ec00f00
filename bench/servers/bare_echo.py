"""Bare WebSocket echo on aiohttp's public API: what the parsing and the encoding alone cost.

Every append is parsed (prefix match, msgspec where that fails) and its audio decoded; the audio
waits in a bounded deque and goes out again as a freshly encoded delta. There are no sessions, no
turns, no pacing and no limits: the yardstick for what a gateway adds. It uses the fastest parts
that a careful author would choose, so that the comparison is not against a straw man.
"""

import argparse
import asyncio
import collections
import resource
import signal

import msgspec
import pybase64
import uvloop
from aiohttp import WSMsgType, web

QUEUE_FRAMES = 50
APPEND_HEAD = b'{"type":"input_audio_buffer.append","audio":"'
DELTA_HEAD = (
    b'{"type":"response.output_audio.delta","response_id":"resp_B9xkRQ0123456789abcde",'
    b'"item_id":"item_B9xkRQ0123456789abcde","output_index":0,"content_index":0,"event_id":"event_'
)


class AppendAudio(msgspec.Struct, tag_field="type", tag="input_audio_buffer.append", gc=False):
    audio: msgspec.Raw
    event_id: str | None = None


class Commit(msgspec.Struct, tag_field="type", tag="input_audio_buffer.commit", gc=False):
    event_id: str | None = None


class SessionUpdate(msgspec.Struct, tag_field="type", tag="session.update", gc=False):
    session: msgspec.Raw
    event_id: str | None = None


decode_command = msgspec.json.Decoder(AppendAudio | Commit | SessionUpdate).decode


def parse(message: bytes) -> bytes | None:
    """The PCM of an append; None for any other command."""
    head = len(APPEND_HEAD)
    if message[:head] == APPEND_HEAD and message.find(b'"', head) == len(message) - 2:
        return pybase64.b64decode(message[head:-2], validate=True)
    command = decode_command(message)
    if type(command) is AppendAudio:
        return pybase64.b64decode(memoryview(command.audio)[1:-1], validate=True)
    return None


def encode(number: int, pcm: bytes) -> bytes:
    return b"".join((DELTA_HEAD, b"%d" % number, b'","delta":"', pybase64.b64encode(pcm), b'"}'))


class Channel:
    """Bounded hand-over from the reader to the writer of one connection; drops the oldest."""

    def __init__(self) -> None:
        self._frames: collections.deque[bytes] = collections.deque(maxlen=QUEUE_FRAMES)
        self._waiter: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._closed = False

    def put(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._wake()

    def close(self) -> None:
        self._closed = True
        self._wake()

    async def get(self) -> bytes | None:
        while not self._frames:
            if self._closed:
                return None
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._frames.popleft()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


async def echo(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(compress=False, decode_text=False, max_msg_size=1 << 20)
    await socket.prepare(request)
    channel = Channel()

    async def write() -> None:
        number = 0
        while (pcm := await channel.get()) is not None:
            number += 1
            await socket.send_frame(encode(number, pcm), WSMsgType.TEXT)

    async with asyncio.TaskGroup() as group:
        group.create_task(write(), name="writer")
        try:
            async for message in socket:
                if (pcm := parse(message.data)) is not None:
                    channel.put(pcm)
        finally:
            channel.close()
    return socket


async def serve(port: int, ttl_s: int) -> None:
    app = web.Application()
    app.router.add_get("/", echo)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=4096).start()
    await asyncio.sleep(ttl_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ttl", type=int, default=120, help="seconds until it stops by itself")
    args = parser.parse_args()
    signal.alarm(args.ttl + 1)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    uvloop.run(serve(args.port, args.ttl))


if __name__ == "__main__":
    main()
