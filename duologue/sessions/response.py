"""The life of one response, as a table, and what is known about it.

This module must not know the conversation, the wire or the clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from duologue.codecs.encoder import OutputEncoder
from duologue.core.fence import Lane
from duologue.engines.payloads import TokenUsage
from duologue.protocol.response_config import ResponseConfig
from duologue.sessions.history import Spoken


class ResponseState(Enum):
    """Where a response is in its life."""

    CREATED = "created"
    SPEAKING = "speaking"
    """It has an item, and output."""

    DRAINING = "draining"
    """Everything is generated; some of it still waits to be sent."""

    ENDED = "ended"
    """``response.done`` is out; playback may go on."""


class ResponseInput(Enum):
    """What can happen to a response."""

    FIRST_OUTPUT = "first_output"
    GENERATED = "generated"
    DELIVERED = "delivered"
    STOPPED = "stopped"
    """Interrupted, cancelled or failed."""


RESPONSE_LIFE: dict[tuple[ResponseState, ResponseInput], ResponseState] = {
    (ResponseState.CREATED, ResponseInput.FIRST_OUTPUT): ResponseState.SPEAKING,
    (ResponseState.CREATED, ResponseInput.GENERATED): ResponseState.DRAINING,
    (ResponseState.CREATED, ResponseInput.STOPPED): ResponseState.ENDED,
    (ResponseState.SPEAKING, ResponseInput.GENERATED): ResponseState.DRAINING,
    (ResponseState.SPEAKING, ResponseInput.STOPPED): ResponseState.ENDED,
    (ResponseState.DRAINING, ResponseInput.DELIVERED): ResponseState.ENDED,
    (ResponseState.DRAINING, ResponseInput.STOPPED): ResponseState.ENDED,
}


@dataclass(slots=True)
class Response:
    """One response, from ``response.created`` to ``response.done``.

    Args:
        progress_at: When it was created, or last produced something.
        item_id: The assistant's message; made at the first output.
        audio: The answer is spoken.
        spoken: All that was generated so far; shared with the conversation's entry.
        awaits: Items of its conversation whose words were not known when it was created.
        delivered_text: What was handed to the connection as text or transcript.
        status: How generation ended, with ``reason``: both are for ``response.done``.
    """

    id: str
    config: ResponseConfig
    progress_at: float
    encoder: OutputEncoder
    item_id: str = ""
    awaits: frozenset[str] = frozenset()
    state: ResponseState = ResponseState.CREATED
    spoken: Spoken = field(init=False)
    audio: bool = field(init=False)
    delivered_text: list[str] = field(default_factory=list)
    sent_speech: bool = False
    status: str = "completed"
    reason: str = ""
    usage: TokenUsage | None = None

    def __post_init__(self) -> None:
        self.audio = "audio" in self.config.output_modalities
        self.spoken = Spoken(self.id, self.encoder.from_hz)

    @property
    def out_of_band(self) -> bool:
        """The answer does not enter the conversation."""
        return self.config.conversation == "none"

    @property
    def lane(self) -> Lane:
        """The fencing lane: a response's own id."""
        return Lane(self.id)

    def advance(self, happened: ResponseInput) -> None:
        """Move along ``RESPONSE_LIFE``; a move that is not in the table is our own bug."""
        self.state = RESPONSE_LIFE[self.state, happened]

    def ended_with(self, status: str, reason: str) -> None:
        """Note how generation ended."""
        self.status = status
        self.reason = reason
