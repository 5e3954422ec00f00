"""A dialogue with a plugin that says what a test wants, and a client that reads when asked."""

from __future__ import annotations

import random
from typing import TypeVar

from duologue.core.ids import id_maker
from duologue.duplex_plugins.contract import (
    Capabilities,
    PluginConfig,
    PluginEffect,
    SayAudio,
    SayText,
    Tick,
)
from duologue.engines.payloads import SpeechMark
from duologue.protocol.commands import ResponseParams
from duologue.protocol.events import Event
from duologue.protocol.items import (
    InputText,
    MessageItem,
)
from duologue.protocol.response_config import ResponseConfig, response_config
from duologue.protocol.session_config import SessionConfig
from duologue.sessions.dialogue.dialogue import Dialogue
from duologue.sessions.dialogue.plugin_host import PluginHost
from duologue.sessions.history.history import History
from duologue.sessions.requests import Requests
from duologue.sessions.speaking.output_buffer import OutputLimits
from duologue.sessions.speaking.pacing import Pace
from duologue.sessions.speaking.response import Response
from duologue.sessions.speaking.speaking import Speaking
from tests.fakes.plugin import FakePlugin

RATE_HZ = 24000
MS = RATE_HZ // 1000
T = 100.0
E = TypeVar("E", bound=Event)


def pcm(ms: int) -> bytes:
    return b"\x01\x00" * (ms * MS)


def user(item_id: str, text: str = "hello") -> MessageItem:
    return MessageItem(id=item_id, role="user", content=(InputText(text=text),))


class Bench:
    """A dialogue with a plugin that says what a test wants."""

    def __init__(
        self,
        capabilities: Capabilities | None = None,
        limits: OutputLimits | None = None,
        rate_hz: int = RATE_HZ,
    ) -> None:
        new_id = id_maker(random.Random(0))
        self.plugin = FakePlugin(capabilities, answers=False)
        self.history = History(100)
        self.requests = Requests("s")
        self.speaking = Speaking(self.history, limits or OutputLimits(), Pace(), rate_hz, new_id)
        self.dialogue = Dialogue(
            PluginHost(self.plugin, PluginConfig(), self.requests),
            self.speaking,
            self.history,
            self.requests,
            new_id,
            response_config(SessionConfig(instructions="own")),
            max_out_of_band=2,
        )
        self.events: list[Event] = []

    def config(self, **params: object) -> ResponseConfig:
        return response_config(SessionConfig(), ResponseParams(**params))  # type: ignore[arg-type]

    def request(self, **params: object) -> Response:
        """Ask for an answer; returns it."""
        self.dialogue.request(self.config(**params), T)
        return self.speaking.all()[-1]

    def say(self, *effects: PluginEffect, now: float = T) -> None:
        self.plugin.then(*effects)
        self.dialogue.tell(Tick(1), now)

    def read(self, now: float = T) -> list[Event]:
        """Take what may be sent now."""
        self.speaking.pacing.let_pass(now)
        events = self.speaking.pull(now, 1 << 30)
        self.events += events
        self.dialogue.follow_up(now)
        return events

    def of(self, kind: type[E]) -> list[E]:
        self.read()
        return [event for event in self.events if isinstance(event, kind)]

    def speak(self, ms: int = 3000, text: str = "one two three") -> Response:
        """Have the plugin say something, and the client read what it may."""
        response = self.request()
        self.say(
            SayText(response.id, text),
            SayAudio(response.id, pcm(ms), (SpeechMark(len(text), ms * MS),)),
        )
        self.read()
        return response
