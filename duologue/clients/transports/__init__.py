"""Ways for commands and events to travel: a WebSocket, or a session in the same process."""

from duologue.clients.transports.base import Received, Transport
from duologue.clients.transports.in_process import InProcessTransport
from duologue.clients.transports.websocket import WebSocketTransport

__all__ = ["InProcessTransport", "Received", "Transport", "WebSocketTransport"]
