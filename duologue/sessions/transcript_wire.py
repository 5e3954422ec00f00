"""How transcripts of the person's speech are shown to the client.

Deltas can only be added to, so only what a recogniser has proved to stand by is sent before the
end. This module must not know how a transcript comes about.
"""

from __future__ import annotations

from collections.abc import Iterator

from duologue.duplex_plugins.contract import TranscriptKind
from duologue.protocol.errors import ERROR_TABLE, ErrorCode
from duologue.protocol.events import (
    DurationUsage,
    Event,
    TranscriptionCompleted,
    TranscriptionDelta,
    TranscriptionError,
    TranscriptionFailed,
)
from duologue.sessions.transcription import TranscriptReady

REMEMBERED_ITEMS = 64
"""Turns that wait for their last transcript; one that was abandoned waits for ever."""


class TranscriptWire:
    """Remembers, per item, what was sent as deltas."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._sent: dict[str, str] = {}

    def events(self, ready: TranscriptReady) -> Iterator[Event]:
        """Yield what a new transcript adds for the client."""
        sent = self._sent.get(ready.item_id, "")
        if ready.kind is not TranscriptKind.FINAL:
            if len(ready.stable) > len(sent) and ready.stable.startswith(sent):
                self._sent[ready.item_id] = ready.stable
                if len(self._sent) > REMEMBERED_ITEMS:
                    del self._sent[next(iter(self._sent))]
                yield TranscriptionDelta(item_id=ready.item_id, delta=ready.stable[len(sent) :])
            return
        self._sent.pop(ready.item_id, None)
        if len(ready.text) > len(sent) and ready.text.startswith(sent):
            yield TranscriptionDelta(item_id=ready.item_id, delta=ready.text[len(sent) :])
        yield TranscriptionCompleted(
            item_id=ready.item_id,
            transcript=ready.text,
            usage=DurationUsage(seconds=round(ready.audio_samples / self._rate_hz, 3)),
        )

    def failed(self, item_id: str) -> TranscriptionFailed:
        """Return the event for an item that will have no transcript."""
        self._sent.pop(item_id, None)
        row = ERROR_TABLE[ErrorCode.STAGE_FAILED]
        return TranscriptionFailed(
            item_id=item_id,
            error=TranscriptionError(
                type=row.type, code=ErrorCode.STAGE_FAILED, message=row.public_text
            ),
        )
