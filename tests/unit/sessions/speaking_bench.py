"""A mouth, and a client that reads when a test says so."""

from __future__ import annotations

import random
from collections.abc import Sequence

from duologue.core.ids import id_maker
from duologue.protocol.audio_formats import AudioFormat, PcmFormat
from duologue.protocol.commands import ResponseParams
from duologue.protocol.events import Event
from duologue.protocol.response_config import response_config
from duologue.protocol.response_events import (
    AudioDelta,
    ResponseDone,
)
from duologue.protocol.session_config import SessionConfig
from duologue.sessions.history.history import History
from duologue.sessions.speaking.output_buffer import OutputLimits
from duologue.sessions.speaking.pacing import Pace
from duologue.sessions.speaking.response import Response
from duologue.sessions.speaking.speaking import Speaking

RATE_HZ = 24000
MS = RATE_HZ // 1000
T = 100.0
ALL = 1 << 30


def pcm(ms: int) -> bytes:
    return b"\x01\x00" * (ms * MS)


class Bench:
    """A mouth, and a client that reads when a test says so."""

    def __init__(
        self,
        pace: Pace | None = None,
        limits: OutputLimits | None = None,
        max_items: int = 100,
        output_format: AudioFormat | None = None,
    ) -> None:
        self.history = History(max_items)
        self.speaking = Speaking(
            self.history,
            limits or OutputLimits(),
            pace or Pace(),
            RATE_HZ,
            id_maker(random.Random(0)),
        )
        self.config = SessionConfig(output_format=output_format or PcmFormat())

    def begin(self, name: str = "r", **params: object) -> Response:
        wanted = ResponseParams(**params)  # type: ignore[arg-type]
        return self.speaking.begin(name, response_config(self.config, wanted), T)

    def pull(self, now: float = T, max_bytes: int = ALL) -> list[Event]:
        self.speaking.pacing.let_pass(now)
        return self.speaking.pull(now, max_bytes)

    def sent_ms(self, now: float, max_bytes: int = ALL) -> list[int]:
        """Lengths of the pieces of speech that may go out now."""
        return pieces(self.pull(now, max_bytes))


def pieces(events: Sequence[Event]) -> list[int]:
    return [len(event.delta) // 2 // MS for event in events if isinstance(event, AudioDelta)]


def done(events: Sequence[Event]) -> ResponseDone:
    (event,) = [event for event in events if isinstance(event, ResponseDone)]
    return event
