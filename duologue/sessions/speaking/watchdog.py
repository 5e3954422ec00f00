"""The watchdog: finds answers that are stuck, so that nobody waits for ever in silence.

Two things can go wrong without anybody saying so: nothing comes of an answer any more, or its text
goes on and nothing of it sounds. This module must not know what is done about it.
"""

from __future__ import annotations

from collections.abc import Iterator

from duologue.protocol.errors import ErrorCode
from duologue.sessions.speaking.response import Response, ResponseState
from duologue.sessions.speaking.speaking import Speaking


class Watchdog:
    """Watches the responses of one session.

    Args:
        silence_s: How long nothing at all may come of a response, though nothing of it waits.
        inaudible_s: How long the text of a spoken answer may wait for its sound, once all that
            was sent before has been heard.
        patient: The model decides about turns, so it may say nothing for as long as it likes.
    """

    __slots__ = ("_inaudible_s", "_patient", "_silence_s", "_speaking")

    def __init__(
        self, speaking: Speaking, silence_s: float, inaudible_s: float, *, patient: bool = False
    ) -> None:
        self._speaking = speaking
        self._silence_s = silence_s
        self._inaudible_s = inaudible_s
        self._patient = patient

    def stuck(self, now: float) -> list[tuple[Response, ErrorCode]]:
        """Return the responses that must fail now, each once, and with which code."""
        found: dict[str, tuple[Response, ErrorCode]] = {}
        for due, response, code in self._watched():
            if now >= due:
                found.setdefault(response.id, (response, code))
        return list(found.values())

    def due_at(self) -> float | None:
        """When the next one would be stuck; ``None`` while none can be."""
        return min((due for due, _, _ in self._watched()), default=None)

    def _watched(self) -> Iterator[tuple[float, Response, ErrorCode]]:
        for response in self._speaking.all():
            if response.state is ResponseState.DRAINING:
                continue
            if not self._patient and self._speaking.buffer.is_empty(response.id):
                yield response.progress_at + self._silence_s, response, ErrorCode.STAGE_TIMEOUT
            since = response.unsounded_since
            if since is not None and not self._speaking.buffer.speech_samples(response.id):
                # The request that speaks may well wait for what was sent to be heard.
                since = max(since, self._speaking.playback.busy_until)
                yield since + self._inaudible_s, response, ErrorCode.RESPONSE_INAUDIBLE
