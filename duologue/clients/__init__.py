"""The SDK: calls with a Duologue, or any Realtime, server. Needs nothing of the server's packages.

Start with ``DuplexClient``. Events and commands are the classes of ``duologue.protocol``.
"""

from duologue.clients.address import realtime_url
from duologue.clients.client import DuplexClient
from duologue.clients.clip_device import ClipDevice
from duologue.clients.devices import Device, DevicePort
from duologue.clients.errors import (
    AnswerTimeout,
    AudioDeviceError,
    CallEnded,
    CallError,
    CommandRefused,
    ConnectionLost,
    EventsMissed,
    NotRealtimeServer,
    SendBufferFull,
    ServerSilent,
    ServerUnreachable,
    SessionGone,
)
from duologue.clients.event_stream import EventStream
from duologue.clients.machine import CallMachine
from duologue.clients.playback import Playback, Taken
from duologue.clients.reconnect.events import (
    AudioDropped,
    CallLost,
    Reconnected,
    Reconnecting,
)
from duologue.clients.reconnect.policy import ReconnectPolicy
from duologue.clients.responses import Response, ResponseStream
from duologue.clients.timing import CallTiming, TurnTiming
from duologue.clients.tools.function import Tool, ToolContext
from duologue.clients.transcript import Line, LineState, Side, Transcript
from duologue.clients.wav_files import read_wav, write_wav

__all__ = [
    "AnswerTimeout",
    "AudioDeviceError",
    "AudioDropped",
    "CallEnded",
    "CallError",
    "CallLost",
    "CallMachine",
    "CallTiming",
    "ClipDevice",
    "CommandRefused",
    "ConnectionLost",
    "Device",
    "DevicePort",
    "DuplexClient",
    "EventStream",
    "EventsMissed",
    "Line",
    "LineState",
    "NotRealtimeServer",
    "Playback",
    "ReconnectPolicy",
    "Reconnected",
    "Reconnecting",
    "Response",
    "ResponseStream",
    "SendBufferFull",
    "ServerSilent",
    "ServerUnreachable",
    "SessionGone",
    "Side",
    "Taken",
    "Tool",
    "ToolContext",
    "Transcript",
    "TurnTiming",
    "read_wav",
    "realtime_url",
    "write_wav",
]
