"""How a WebSocket is accepted: which of the two channels is used.

This module must not know how either works.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from aiohttp import web

from duologue.gateway.ws import loop_channel
from duologue.gateway.ws.channel import Channel, ChannelTiming
from duologue.telemetry import get_logger

Accept: TypeAlias = Callable[
    [web.Request, str | None, int, ChannelTiming], Awaitable[tuple[web.StreamResponse, Channel]]
]
"""Answers a checked handshake with a subprotocol, for messages of so many bytes at most."""


def choose_accept(private: bool) -> Accept:
    """Return how connections are accepted.

    Args:
        private: By callback, if aiohttp's inside is still as that needs it.
    """
    by_callback = _callback_accept() if private else None
    if by_callback is not None:
        return by_callback
    if private:
        get_logger("gateway").warning("callback_reader_unavailable", consequence="a sixth more CPU")
    return loop_channel.accept


def _callback_accept() -> Accept | None:
    try:
        # Late, since another aiohttp may not have what it imports.
        from duologue.gateway.ws import callback_channel
    except ImportError:
        return None
    return callback_channel.accept if callback_channel.callback_reader_works() else None
