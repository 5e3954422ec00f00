"""The life of one response, as a table, and what is known about it.

This module must not know the conversation, the wire or the clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from duologue.codecs.encoder import OutputEncoder
from duologue.core.fence import Lane
from duologue.engines.payloads import NO_TOOLS, TokenUsage, Tools
from duologue.protocol.response_config import ResponseConfig
from duologue.sessions.history.entry import Spoken
from duologue.sessions.speaking.output_items import OutputCall, OutputItem, OutputMessage


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
        audio: The answer is spoken.
        unsounded_since: When text was said of which no sound has come yet; ``None``: of all of it
            some has.
        tools: What it may call.
        items: What was generated so far, in order.
        shown: How many of them the client was shown; of these the last may still grow.
        current: That last one.
        message: The one that is being generated; ``None`` before the first and after a call.
        awaits: Items of its conversation whose words were not known when it was created.
        credited: A request works for it, which may produce as much again as was sent.
        sent_samples: How much was sent since then, as far as credit was granted for it.
        status: How generation ended, with ``reason``: both are for ``response.done``.
    """

    id: str
    config: ResponseConfig
    progress_at: float
    encoder: OutputEncoder
    tools: Tools = NO_TOOLS
    items: list[OutputItem] = field(default_factory=list)
    shown: int = 0
    message: OutputMessage | None = None
    awaits: frozenset[str] = frozenset()
    state: ResponseState = ResponseState.CREATED
    audio: bool = field(init=False)
    current: OutputItem = field(init=False)
    credited: bool = False
    sent_samples: int = 0
    status: str = "completed"
    reason: str = ""
    usage: TokenUsage | None = None
    unsounded_since: float | None = None

    def __post_init__(self) -> None:
        self.audio = "audio" in self.config.output_modalities

    @property
    def out_of_band(self) -> bool:
        """The answer does not enter the conversation."""
        return self.config.conversation == "none"

    @property
    def lane(self) -> Lane:
        """The fencing lane: a response's own id."""
        return Lane(self.id)

    @property
    def messages(self) -> list[OutputMessage]:
        """The messages among its items."""
        return [item for item in self.items if isinstance(item, OutputMessage)]

    @property
    def calls(self) -> list[OutputCall]:
        """The function calls among its items."""
        return [item for item in self.items if isinstance(item, OutputCall)]

    def new_message(self, item_id: str) -> OutputMessage:
        """Return the next message, which begins where its text and speech are now."""
        messages = self.messages
        return OutputMessage(
            item_id,
            len(self.items),
            self.audio,
            Spoken(self.id, self.encoder.from_hz),
            text_start=sum(len(each.spoken.text) for each in messages),
            sample_start=sum(each.spoken.samples for each in messages),
        )

    def heard_text(self) -> str:
        """Return all of its text that the person has heard, or could read."""
        return "".join(message.heard_text() for message in self.messages)

    def advance(self, happened: ResponseInput) -> None:
        """Move along ``RESPONSE_LIFE``; a move that is not in the table is our own bug."""
        self.state = RESPONSE_LIFE[self.state, happened]

    def ended_with(self, status: str, reason: str) -> None:
        """Note how generation ended."""
        self.status = status
        self.reason = reason
