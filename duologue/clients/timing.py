"""When things happened in a call, on the caller's clock, and how long people waited.

Each turn of the caller collects the moments that can be seen from this side of the wire. This
module must not know events; it is told, with ``now``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

MAX_TURNS = 256
_REMEMBERED_SENDS = 4096
"""More than a minute of 20 ms frames."""

_BEFORE_FIRST_S = 1.0
"""How far before the oldest send that is remembered a moment may lie."""

_AUDIBLE = 328
"""1 % of full scale, -40 dBFS."""


@dataclass(slots=True)
class TurnTiming:
    """The moments of one turn and of the answer to it; ``None``: not seen.

    Units:
        Seconds of the caller's monotonic clock.

    Args:
        item_id: The caller's item.
        speech_from: When the first sample of the speech was sent, by the server's detector.
        speech_until: The same for the last one: from here on the caller waits.
        confirmed_at: ``speech_started`` arrived.
        end_of_turn_at: ``speech_stopped`` arrived: the server is sure that the turn is over.
        transcribed_at: The transcript of the speech was complete.
        response_id: The answer.
        response_at: The answer was begun.
        first_text_at: Its first words arrived.
        first_audio_at: Its first samples arrived.
        audible_at: The loudspeaker began its first audible sample.
        done_at: All of it had arrived, or it was cut off.
    """

    item_id: str
    speech_from: float | None = None
    speech_until: float | None = None
    confirmed_at: float | None = None
    end_of_turn_at: float | None = None
    transcribed_at: float | None = None
    response_id: str | None = None
    response_at: float | None = None
    first_text_at: float | None = None
    first_audio_at: float | None = None
    audible_at: float | None = None
    done_at: float | None = None

    def since_speech(self, moment: float | None) -> float | None:
        """Seconds from the end of the speech to a moment; ``None`` where one is not known."""
        if moment is None or self.speech_until is None:
            return None
        return moment - self.speech_until

    @property
    def wait_s(self) -> float | None:
        """From the end of the speech to the first audible sample of the answer."""
        return self.since_speech(self.audible_at)


class CallTiming:
    """The turns of one call."""

    def __init__(self, max_turns: int = MAX_TURNS) -> None:
        self._turns: deque[TurnTiming] = deque(maxlen=max_turns)

    def __iter__(self) -> Iterator[TurnTiming]:
        return iter(self._turns)

    def __len__(self) -> int:
        return len(self._turns)

    def turn(self, item_id: str) -> TurnTiming:
        """Return the turn of a caller's item, a new one at its first mention."""
        for turn in reversed(self._turns):
            if turn.item_id == item_id:
                return turn
        turn = TurnTiming(item_id)
        self._turns.append(turn)
        return turn

    def begin_response(self, response_id: str, now: float) -> TurnTiming | None:
        """Note an answer; it belongs to the latest turn that has none."""
        if not self._turns or self._turns[-1].response_id is not None:
            return None
        turn = self._turns[-1]
        turn.response_id, turn.response_at = response_id, now
        return turn

    def confirmed_since(self, moment: float) -> bool:
        """The server has found speech at that moment or later."""
        return any(turn.confirmed_at is not None and turn.confirmed_at >= moment for turn in self)

    def of_response(self, response_id: str) -> TurnTiming | None:
        """Return the turn that a response answers; ``None`` where it came unasked."""
        for turn in reversed(self._turns):
            if turn.response_id == response_id:
                return turn
        return None


class InputClock:
    """When each moment of the microphone's stream was sent. Positions count from its beginning."""

    def __init__(self) -> None:
        self.position_s = 0.0
        """How much was sent in all."""

        self._sends: deque[tuple[float, float]] = deque(maxlen=_REMEMBERED_SENDS)

    def sent(self, duration_s: float, now: float) -> None:
        """Book audio that was handed to the transport, the end of which was just said."""
        self.position_s += duration_s
        self._sends.append((self.position_s, now))

    def time_of(self, position_ms: float) -> float | None:
        """When the audio at a position was said; ``None`` where that is not known any more."""
        position_s = position_ms / 1000
        for end_s, now in reversed(self._sends):
            if end_s <= position_s:
                return now + position_s - end_s
        if self._sends:
            end_s, now = self._sends[0]
            if end_s - position_s <= _BEFORE_FIRST_S:
                return now - (end_s - position_s)
        return None


def first_audible(pcm: bytes) -> int | None:
    """Return the index of the first sample above -40 dBFS."""
    loud = np.flatnonzero(np.abs(np.frombuffer(pcm, "<i2").astype(np.int32)) > _AUDIBLE)
    return int(loud[0]) if len(loud) else None
