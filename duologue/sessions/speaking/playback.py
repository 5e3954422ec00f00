"""The playback ledger: what was sent against what the person has heard.

Generation, sending and hearing are three clocks. Heard comes from the client when it says so
(acknowledgements, truncation), else from elapsed time capped by what was sent. This module must
not know responses or text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from duologue.core.audio import ms_to_samples
from duologue.sessions.speaking.silencer import Silencer

REMEMBERED_ITEMS = 64
"""Items whose positions are kept; a client may truncate an older answer, but not an ancient one."""


@dataclass(slots=True)
class _Item:
    sent: int = 0
    played_by: float = 0.0
    """When the last sample sent so far will have been heard, by our estimate."""
    acknowledged: int | None = None
    silenced: bool = False
    server_cut: int | None = None
    client_cut: int | None = None


class PlaybackLedger:
    """Positions, in samples, of each spoken item.

    The person hears one timeline: audio sent while earlier audio still plays is heard after it.
    A cut by the server (an interruption) is provisional: the first value from the client
    replaces it. Cuts by the client only ever shrink.
    """

    __slots__ = (
        "_busy_until",
        "_items",
        "_rate_hz",
        "_silencer",
        "only_acknowledged",
    )

    def __init__(self, rate_hz: int, silencer: Silencer) -> None:
        self.only_acknowledged = False
        """Nothing counts as heard before the client says so."""

        self._silencer = silencer
        self._rate_hz = rate_hz
        self._items: dict[str, _Item] = {}
        self._busy_until = float("-inf")

    def lead_s(self, now: float) -> float:
        """Seconds of sent audio that the person has not heard yet, by our estimate."""
        return max(0.0, self._busy_until - now)

    @property
    def busy_until(self) -> float:
        """When all that was sent will have been heard, by our estimate."""
        return self._busy_until

    def on_sent(self, item_id: str, samples: int, now: float) -> None:
        """Book audio that was handed to the transport."""
        item = self._items.get(item_id)
        if item is None:
            item = self._items[item_id] = _Item()
            if len(self._items) > REMEMBERED_ITEMS:
                del self._items[next(iter(self._items))]
        item.sent += samples
        begins = now if now > self._busy_until else self._busy_until
        item.played_by = self._busy_until = begins + samples / self._rate_hz

    def on_acknowledged(
        self, item_id: str, heard_ms: float, now: float | None = None
    ) -> int | None:
        """Book the client's word on how much of an item was played; it only grows.

        From then on this position counts, not our estimate.

        Args:
            now: When it was played: the rest of what was sent is yet to be heard. ``None``: that is
                not what the client was asked.

        Returns:
            How much was heard; ``None`` for an item that nothing was sent of, or not lately.
        """
        item = self._items.get(item_id)
        if item is None:
            return None
        heard = min(ms_to_samples(heard_ms, self._rate_hz), item.sent)
        if item.acknowledged is None or heard > item.acknowledged:
            item.acknowledged = heard
            if now is not None and not item.silenced:
                item.played_by = now + (item.sent - heard) / self._rate_hz
                self._busy_until = max(other.played_by for other in self._items.values())
        item.server_cut = None
        return item.acknowledged if item.client_cut is None else item.client_cut

    def on_sent_again(self, pieces: Sequence[tuple[str, float]], now: float) -> None:
        """Book audio that got lost on its way, and is sent a second time.

        Args:
            pieces: Items and seconds, in order: the end of all that was sent.
        """
        # They were never heard, so what was heard before them is further than was thought.
        self._busy_until -= sum(seconds for _, seconds in pieces)
        for item_id, seconds in pieces:
            self._busy_until = max(self._busy_until, now) + seconds
            if (item := self._items.get(item_id)) is not None and not item.silenced:
                item.played_by = self._busy_until

    def positions(self, now: float) -> list[tuple[str, int, int]]:
        """Return items that were spoken lately, with the samples sent and heard of each."""
        return [(key, item.sent, self.heard_samples(key, now)) for key, item in self._items.items()]

    def sent_samples(self, item_id: str) -> int:
        """How much of an item was handed to the transport."""
        item = self._items.get(item_id)
        return 0 if item is None else item.sent

    def interrupt(self, item_id: str, now: float) -> int:
        """Stop playback now and return how much of the item was heard; provisional."""
        item = self._items.get(item_id)
        if item is None:
            return 0
        item.server_cut = self._estimate(item, now)
        self._silence(item_id, item, now)
        return self.heard_samples(item_id, now)

    def playing(self, now: float) -> list[str]:
        """Items of which, by our estimate, something sent is still to be heard."""
        return [item_id for item_id, item in self._items.items() if item.played_by > now]

    def truncate(self, item_id: str, audio_end_ms: int, now: float) -> int | None:
        """Cut an item where the client stopped playing it; never beyond what was sent.

        Returns:
            How much was heard; ``None`` for an item that nothing was sent of, or not lately.
        """
        item = self._items.get(item_id)
        if item is None:
            return None
        cut = min(ms_to_samples(audio_end_ms, self._rate_hz), item.sent)
        item.client_cut = cut if item.client_cut is None else min(cut, item.client_cut)
        self._silence(item_id, item, now)
        return item.client_cut

    def client_cut(self, item_id: str) -> int | None:
        """Where the client says that it stopped playing an item; ``None``: it has not said."""
        item = self._items.get(item_id)
        return None if item is None else item.client_cut

    def heard_samples(self, item_id: str, now: float) -> int:
        """How much of an item the person has heard, as well as is known."""
        item = self._items.get(item_id)
        if item is None:
            return 0
        if item.client_cut is not None:
            return item.client_cut
        if item.server_cut is not None:
            return item.server_cut
        return self._estimate(item, now)

    def _silence(self, item_id: str, item: _Item, now: float) -> None:
        """Nothing more of an item is heard; other items go on."""
        self._silencer.withdraw(item_id)
        item.silenced = True
        item.played_by = min(item.played_by, now)
        self._busy_until = max(other.played_by for other in self._items.values())

    def _estimate(self, item: _Item, now: float) -> int:
        if item.acknowledged is not None:
            return item.acknowledged
        if self.only_acknowledged:
            return 0
        unheard = max(0.0, item.played_by - now) * self._rate_hz
        return max(0, item.sent - round(unheard))
