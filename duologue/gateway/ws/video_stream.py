"""``WS /v1/realtime/video``: a video that is watched while it is made.

The client says what it wants, and gets fragments of an MP4, each announced by a message in JSON and
sent as one binary message. One task reads and one makes, so that a stop is heard in the midst of a
step. This module must not know how a video comes about.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import aclosing
from typing import Literal

import msgspec
from aiohttp import WSMessage, WSMsgType, web

from duologue.core.errors import DuologueError, ProtocolError
from duologue.engines.ports import WorkClass
from duologue.gateway.beside_loop import read_beside_loop
from duologue.gateway.http.routes import JSON, WAIT_PARAMETER, Content, Route
from duologue.gateway.http.services import HttpServices
from duologue.gateway.media.filming import Filming
from duologue.gateway.media.offers import MediaModels
from duologue.gateway.media.video_checks import VideoFields, video_of
from duologue.gateway.ws.route_sockets import RouteSockets
from duologue.protocol.errors import ErrorCode, error_body, refused, shown
from duologue.protocol.events import ErrorBody
from duologue.protocol.json_integers import refuse_wide_integers
from duologue.protocol.json_refusals import body_refusal
from duologue.protocol.json_values import refuse_many_json_values

PLAIN_PROTOCOL = "realtime"
START_LIMIT_S = 10.0
"""A client says within this time what it wants."""

STALL_LIMIT_S = 60.0
"""While a video is made, a client pings at least so often."""

MAX_MESSAGE_BYTES = 4 << 20


class StartVideo(VideoFields, frozen=True, kw_only=True, tag="session.start"):
    """Make a video; the first message.

    Args:
        format: ``m4s``: fragments of an MP4.
    """

    model: str | None = None
    format: str = "m4s"


class PingVideo(msgspec.Struct, frozen=True, tag="session.ping"):
    """The client is still there."""


class StopVideo(msgspec.Struct, frozen=True, tag="session.stop"):
    """Give the video up."""


class VideoStarted(msgspec.Struct, frozen=True, tag="video.start"):
    """The video begins; ``mime`` is what a browser's ``addSourceBuffer`` takes."""

    request_id: str
    format: str
    mime: str
    width: int
    height: int
    fps: int


class ChunkMetadata(msgspec.Struct, frozen=True, tag="video.chunk_metadata"):
    """Announces the binary message that follows.

    Args:
        kind: ``trailer`` for what is left at the end, without a picture of its own.
    """

    request_id: str
    kind: Literal["media", "trailer"]
    num_frames: int
    byte_length: int
    transport_chunk_index: int


class VideoPong(msgspec.Struct, frozen=True, tag="session.pong"):
    """The server is still there, and how far the video is."""

    progress: int


class VideoDone(msgspec.Struct, frozen=True, tag="session.done"):
    """All has been sent, or the client stopped it."""

    request_id: str
    chunks: int
    stopped: bool


class VideoFault(msgspec.Struct, frozen=True, tag="error"):
    """A message was refused, or the video failed."""

    error: ErrorBody


VideoCommand = StartVideo | PingVideo | StopVideo
VideoEvent = VideoStarted | ChunkMetadata | VideoPong | VideoDone | VideoFault
_DECODER = msgspec.json.Decoder(VideoCommand)


class VideoStreamEndpoint:
    """The route."""

    def __init__(self, services: HttpServices, models: MediaModels, filming: Filming) -> None:
        self._services = services
        self._models = models
        self._filming = filming
        self._sockets = RouteSockets()

    def routes(self) -> Sequence[Route]:
        """For the application."""
        return (
            Route(
                method="GET",
                path="/v1/realtime/video",
                operation="streamVideo",
                summary="Watch a video while it is made (WebSocket).",
                handle=self.handle,
                answers=(Content(JSON),),
                parameters=(WAIT_PARAMETER,),
                refusals=(400,),
                is_socket=True,
                work=WorkClass.BATCH,
            ),
        )

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        """Hold one connection."""
        async with self._sockets.hold(
            request, max_message_bytes=MAX_MESSAGE_BYTES, protocols=(PLAIN_PROTOCOL,)
        ) as socket:
            await self._hold(socket)
        return socket

    async def close_all(self, limit_s: float) -> None:
        """Say goodbye to everybody, for ``limit_s`` at most: the server goes down."""
        await self._sockets.close_all(limit_s)

    async def _hold(self, socket: web.WebSocketResponse) -> None:
        try:
            start = await self._started(socket)
        except DuologueError as exc:
            await _send(socket, VideoFault(error_body(exc)))
            return
        if start is not None:
            film = _Film(socket, self._services, self._models, self._filming)
            await film.show(start)

    async def _started(self, socket: web.WebSocketResponse) -> StartVideo | None:
        """Return what the client wants; ``None``: it has gone.

        Raises:
            ProtocolError: It says something else first, or nothing in time.
        """
        try:
            message = await socket.receive(START_LIMIT_S)
        except TimeoutError:
            raise ProtocolError(
                f"session.start did not come within {START_LIMIT_S:g} s",
                code=ErrorCode.CONFIG_TIMEOUT,
            ) from None
        if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            return None
        command = await _command(message)
        if not isinstance(command, StartVideo):
            raise refused("the first message is session.start", "type", ErrorCode.INVALID_REQUEST)
        return command


class _Film:
    """One video on its way to one client."""

    def __init__(
        self,
        socket: web.WebSocketResponse,
        services: HttpServices,
        models: MediaModels,
        filming: Filming,
    ) -> None:
        self._socket = socket
        self._services = services
        self._models = models
        self._filming = filming
        self._request_id = services.new_id("film")
        self._progress = 0
        self._chunks = 0
        self._stopped = False

    async def show(self, start: StartVideo) -> None:
        """Make the video and send it, until it is over or the client stops it."""
        try:
            async with asyncio.TaskGroup() as group:
                maker = group.create_task(self._make(start), name="film")
                reader = group.create_task(self._read(maker), name="film-reader")
                maker.add_done_callback(lambda _: reader.cancel())
        except* ConnectionError:
            self._stopped = True  # whoever wrote last found out that the client has gone
        if not self._socket.closed:
            await self._send(VideoDone(self._request_id, self._chunks, self._stopped))

    async def _make(self, start: StartVideo) -> None:
        try:
            if start.format != "m4s":
                raise refused(f"format is {shown(start.format)}; it may be m4s", "format")
            model = self._models.find(start.model, "videos")
            ask = video_of(start, model.offer, b"", secrets.randbits(32))
            async with aclosing(self._filming.film(model.name, ask, self._tell)) as film:
                async for piece in film:
                    if not self._chunks:
                        await self._send(
                            VideoStarted(
                                self._request_id,
                                "m4s",
                                piece.mime,
                                ask.width,
                                ask.height,
                                ask.picture_rate,
                            )
                        )
                    await self._send_chunk(piece.data, piece.pictures)
        except DuologueError as exc:
            await self._send(VideoFault(error_body(exc)))

    async def _read(self, maker: asyncio.Task[None]) -> None:
        """Hear what the client says meanwhile; leaving early gives the video up."""
        while True:
            try:
                message = await self._socket.receive(STALL_LIMIT_S)
            except TimeoutError:
                break
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                break
            try:
                command = await _command(message)
            except DuologueError as exc:
                await self._send(VideoFault(error_body(exc)))
                continue
            match command:
                case PingVideo():
                    await self._send(VideoPong(self._progress))
                case StopVideo():
                    break
                case StartVideo():
                    second = refused("a video is being made", "type", ErrorCode.INVALID_REQUEST)
                    await self._send(VideoFault(error_body(second)))
        self._stopped = True
        maker.cancel()

    def _tell(self, progress: int) -> None:
        self._progress = progress

    async def _send_chunk(self, data: bytes, pictures: int) -> None:
        kind: Literal["media", "trailer"] = "media" if pictures else "trailer"
        await self._send(ChunkMetadata(self._request_id, kind, pictures, len(data), self._chunks))
        await self._socket.send_bytes(data)
        self._chunks += 1

    async def _send(self, event: VideoEvent) -> None:
        await _send(self._socket, event)


async def _send(socket: web.WebSocketResponse, event: VideoEvent) -> None:
    await socket.send_str(msgspec.json.encode(event).decode())


async def _command(message: WSMessage) -> VideoCommand:
    """Read a message.

    Raises:
        ProtocolError: It is none.
    """
    if message.type is WSMsgType.BINARY:
        raise refused("messages of a client are JSON text", None, ErrorCode.INVALID_JSON)
    return await read_beside_loop(_decoded, message.data.encode())


def _decoded(raw: bytes) -> VideoCommand:
    refuse_many_json_values(raw)
    refuse_wide_integers(raw, "the body")
    try:
        return _DECODER.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise body_refusal(exc) from None
