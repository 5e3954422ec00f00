"""The channel that reads through aiohttp's public API: dearer, and sure to work with any aiohttp.

This module must not know what is in a message.
"""

from __future__ import annotations

import asyncio

from aiohttp import WSMsgType, web

from duologue.core.tasks import CrashBarrier
from duologue.gateway.ws.channel import Channel, ChannelTiming
from duologue.gateway.ws.heartbeat import Beat

_LOOK_EVERY_S = 0.05


class ReceivingResponse(web.WebSocketResponse[bool]):
    """A WebSocket that never says goodbye by itself: that is the channel's business."""

    is_released = False

    async def close(self, *, code: int = 1000, message: bytes = b"", drain: bool = True) -> bool:
        """Stop the heartbeat once the channel is through; before that, nothing."""
        return self.is_released and await super().close(code=code, message=message, drain=False)


async def accept(
    request: web.Request, protocol: str | None, max_message_bytes: int, timing: ChannelTiming
) -> tuple[web.StreamResponse, Channel]:
    """Answer a checked handshake, and select ``protocol``.

    Raises:
        ConnectionError: The client is gone.
    """
    response = ReceivingResponse(
        heartbeat=timing.heartbeat_s,
        max_msg_size=max_message_bytes,
        autoclose=False,
        autoping=False,
        compress=False,
        decode_text=False,
        protocols=() if protocol is None else (protocol,),
    )
    # aiohttp logs offers that it does not take, and one of them may be a key.
    await response.prepare(request.clone(headers=_essential(request, protocol)))
    if request.transport is None:
        raise ConnectionResetError("the client left during the handshake")
    return response, LoopChannel(response, request, request.transport, timing)


def _essential(request: web.Request, protocol: str | None) -> dict[str, str]:
    headers = {
        "Upgrade": "websocket",
        "Connection": "upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": request.headers["Sec-WebSocket-Key"],
    }
    if protocol is not None:
        headers["Sec-WebSocket-Protocol"] = protocol
    return headers


class LoopChannel(Channel):
    """Reads in a loop. The heartbeat is aiohttp's, which alone sees parts of messages.

    So is the pausing of the transport: while nobody receives, aiohttp reads what it has room for.
    """

    __slots__ = ("_may_read", "_response")

    def __init__(
        self,
        response: ReceivingResponse,
        request: web.Request,
        transport: asyncio.Transport,
        timing: ChannelTiming,
    ) -> None:
        super().__init__(transport, request.writer, timing)
        self._response = response
        self._may_read = asyncio.Event()
        self._may_read.set()

    def hold(self, on: bool) -> None:
        """Read no further for now, so that the peer waits; or read on."""
        if on:
            self._may_read.clear()
        else:
            self._may_read.set()

    def release(self) -> None:
        """Drop the connection, and let aiohttp drop its part."""
        super().release()
        self._response.is_released = True

    async def _read(self) -> None:
        with CrashBarrier(self.on_failure):
            while not self._read_out.done():
                await self._may_read.wait()
                message = await self._response.receive()
                if message.type in (WSMsgType.CLOSED, WSMsgType.CLOSING):
                    self.on_eof()
                elif message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    self.on_message(message.data)
                elif message.type is not WSMsgType.ERROR:
                    self.on_control(message.type, message.data)
                elif isinstance(message.data, TimeoutError | ConnectionError):
                    self._cut()
                else:
                    self.on_failure(message.data)

    def on_eof(self) -> None:
        """The peer has said goodbye, or is gone."""
        super().on_eof()
        self._may_read.set()

    async def _until_gone(self) -> None:
        # aiohttp does not tell of the end of a connection whose messages it has ceased to read.
        while not self._gone.done() and not self._transport.is_closing():
            await asyncio.wait((self._gone,), timeout=_LOOK_EVERY_S)

    def _beat(self, now: float) -> Beat:
        return Beat.NOTHING

    def _next_beat(self) -> float | None:
        return None
