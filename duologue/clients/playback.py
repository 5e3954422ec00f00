"""Playback: speech that has arrived and waits for the loudspeaker, and how much was heard.

A loudspeaker takes samples at its own pace; ``ClockSpeaker`` stands in where there is none. Whose
samples were taken is known exactly, so an interruption can be told to the server in milliseconds.
This module must not know events, devices or clocks.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from duologue.core.audio import SAMPLE_BYTES, samples_to_ms, silence
from duologue.core.errors import LimitExceeded

RATE_HZ = 24_000
CAPACITY_S = 300
"""Some servers send a whole answer at once; five minutes of one are 14 MB."""

_REMEMBERED_ITEMS = 64
_REMEMBERED_TAKES = 256
"""Takes that a loudspeaker may still hold: 5 s of them at 20 ms each."""


@dataclass(frozen=True, slots=True)
class Cut:
    """An item that an interruption cut off, and where."""

    item_id: str
    content_index: int
    heard_samples: int
    unheard_samples: int
    """What had arrived and was never played."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a loudspeaker gets: samples, and which item each run of them belongs to.

    Args:
        runs: Items with their number of samples, in order; ``None`` is silence.
    """

    pcm: bytes
    runs: tuple[tuple[str | None, int], ...]


@dataclass(slots=True)
class _Item:
    content_index: int
    received: int = 0
    taken: int = 0
    finished: bool = False
    cut: bool = False
    dry: int = 0
    """Samples of silence since it ran dry."""

    waiting: deque[bytes] = field(default_factory=deque)
    """Always whole samples."""

    missing: int = 0
    """Samples that got lost right before the next ones."""

    holes: list[tuple[int, int]] = field(default_factory=list)
    """Where samples are missing: behind how many that arrived, and how many."""

    def position(self, arrived: int) -> int:
        """Return where so many of the samples that arrived end, counted as the server does."""
        return arrived + sum(lost for at, lost in self.holes if at < arrived)


class Playback:
    """The speech of one call, in the order in which it is heard.

    Units:
        s16le mono PCM at ``rate_hz``.

    Args:
        capacity_s: Speech that may wait.
    """

    def __init__(self, rate_hz: int = RATE_HZ, capacity_s: float = CAPACITY_S) -> None:
        self.rate_hz = rate_hz
        self.gap_samples = 0
        """Silence in the middle of answers, because the next samples came too late."""

        self._capacity = int(capacity_s * rate_hz)
        self._waiting = 0
        self._items: OrderedDict[str, _Item] = OrderedDict()
        self._ahead: dict[str, int] = {}
        """Where the first sound of items begins that nothing has come of yet."""
        self._takes: deque[tuple[str | None, int]] = deque(maxlen=_REMEMBERED_TAKES)

    @property
    def waiting_samples(self) -> int:
        """Speech that has arrived and was not taken."""
        return self._waiting

    @property
    def speaking(self) -> str | None:
        """The item that is being heard, or that more is to come of."""
        for item_id, item in self._items.items():
            if item.waiting or (item.received and not item.finished and not item.cut):
                return item_id
        return None

    def put(self, item_id: str, content_index: int, pcm: bytes) -> int:
        """Add speech of an item; of one that was cut, nothing is kept.

        Returns:
            Samples that are missing right before it.

        Raises:
            LimitExceeded: More waits than there is room for; nothing was kept.
        """
        item = self._items.get(item_id)
        if item is None:
            item = self._items[item_id] = _Item(content_index)
            item.missing = self._ahead.pop(item_id, 0)
            self._forget_old()
        samples = len(pcm) // SAMPLE_BYTES
        if item.cut or not samples:
            return 0
        if self._waiting + samples > self._capacity:
            raise LimitExceeded(
                f"{samples_to_ms(self._waiting + samples, self.rate_hz)} ms of speech would wait, "
                f"the limit is {samples_to_ms(self._capacity, self.rate_hz)} ms"
            )
        self.gap_samples += item.dry
        item.dry = 0
        missing, item.missing = item.missing, 0
        if missing:
            item.holes.append((item.received, missing))
        item.received += samples
        item.waiting.append(pcm)
        self._waiting += samples
        return missing

    def resume_at(self, positions: Mapping[str, int]) -> None:
        """Note where the next sound of items begins: what is missing until there never arrives.

        It counts as heard once the sound behind it is: so positions are those of the server, and
        nothing is said to have been heard of an item that does not go on.
        """
        self._ahead = {}
        for item_id, position in positions.items():
            item = self._items.get(item_id)
            if item is None:
                self._ahead[item_id] = position
            else:
                item.missing = max(0, position - item.position(item.received))

    def finish(self, item_id: str) -> None:
        """Note that no more speech comes of an item."""
        item = self._items.get(item_id)
        if item is not None:
            item.finished = True
            item.dry = 0

    def take(self, samples: int) -> Taken:
        """Hand ``samples`` to the loudspeaker, silence where nothing waits."""
        parts: list[bytes] = []
        runs: list[tuple[str | None, int]] = []
        wanted = samples
        for item_id, item in self._items.items():
            before = wanted
            while item.waiting and wanted:
                chunk = item.waiting.popleft()
                size = wanted * SAMPLE_BYTES
                if len(chunk) > size:
                    item.waiting.appendleft(chunk[size:])
                    chunk = chunk[:size]
                parts.append(chunk)
                wanted -= len(chunk) // SAMPLE_BYTES
            if before > wanted:
                item.taken += before - wanted
                self._waiting -= before - wanted
                runs.append((item_id, before - wanted))
            if not wanted:
                break
        if wanted:
            parts.append(silence(wanted))
            runs.append((None, wanted))
            self.run_dry(wanted)
        self._takes.extend(runs)
        return Taken(b"".join(parts), tuple(runs))

    def run_dry(self, samples: int) -> None:
        """Book silence in what is being said; it is a gap if more of it comes."""
        for item in self._items.values():
            if item.received and not item.finished and not item.cut:
                item.dry += samples

    def silence(self, unplayed_samples: int = 0) -> list[Cut]:
        """Drop what waits and say what was cut off, and where.

        Args:
            unplayed_samples: Of those taken last, what the loudspeaker threw away unplayed.
        """
        unplayed = self._unplayed(unplayed_samples)
        cuts = []
        for item_id, item in self._items.items():
            lost = unplayed.get(item_id, 0)
            is_over = item.finished and not item.waiting and not lost
            if item.cut or is_over or not item.received:
                continue
            item.taken -= lost
            item.cut = True
            item.waiting.clear()
            item.dry = 0
            heard = item.position(item.taken)
            unheard = item.position(item.received) - heard
            cuts.append(Cut(item_id, item.content_index, heard, unheard))
        self._waiting = 0
        self._takes.clear()
        return cuts

    def heard_samples(self, item_id: str) -> int:
        """How far the loudspeaker has taken an item."""
        item = self._items.get(item_id)
        return 0 if item is None else item.position(item.taken)

    def sounded(self, unsounded_samples: int = 0) -> dict[str, int]:
        """Return how far each item was heard that was not cut off.

        Args:
            unsounded_samples: Of those taken last, what the loudspeaker has not played yet.
        """
        waiting = self._unplayed(unsounded_samples)
        return {
            item_id: item.position(max(0, item.taken - waiting.get(item_id, 0)))
            for item_id, item in self._items.items()
            if item.taken and not item.cut
        }

    def received_samples(self, item_id: str) -> int:
        """How far an item has arrived."""
        item = self._items.get(item_id)
        return 0 if item is None else item.position(item.received)

    def is_finished(self, item_id: str) -> bool:
        """Tell whether all of an item has arrived."""
        item = self._items.get(item_id)
        return item is not None and item.finished

    def is_cut(self, item_id: str) -> bool:
        """Tell whether an interruption cut an item off."""
        item = self._items.get(item_id)
        return item is not None and item.cut

    def _unplayed(self, samples: int) -> dict[str, int]:
        """Whose samples the latest ``samples`` were."""
        unplayed: dict[str, int] = {}
        for item_id, taken in reversed(self._takes):
            if samples <= 0:
                break
            part = min(taken, samples)
            samples -= part
            if item_id is not None:
                unplayed[item_id] = unplayed.get(item_id, 0) + part
        return unplayed

    def _forget_old(self) -> None:
        """Forget old items that were played; what waits is bounded by ``put``."""
        for item_id in list(self._items):
            if len(self._items) <= _REMEMBERED_ITEMS:
                return
            if not self._items[item_id].waiting:
                del self._items[item_id]


class ClockSpeaker:
    """A loudspeaker that only keeps time: it hears what a real one would have played by ``now``.

    Args:
        playback: What it takes from, exactly at the rate of the samples.
    """

    def __init__(self, playback: Playback) -> None:
        self.played_until: float | None = None
        """Up to when it has listened; ``None`` before it began."""

        self._playback = playback

    def let_pass(self, now: float) -> Taken:
        """Take what was due since the last call; call it before anything is put in."""
        playback = self._playback
        if self.played_until is None:
            self.played_until = now
        due = int(max(0.0, now - self.played_until) * playback.rate_hz + _ROUNDING)
        playable = min(due, playback.waiting_samples)
        taken = playback.take(playable) if playable else _NOTHING
        if due > playable:
            # Silence needs no samples: what comes next begins when it comes.
            playback.run_dry(due - playable)
            self.played_until = now
        else:
            self.played_until += due / playback.rate_hz
        return taken

    def empty_at(self, now: float) -> float:
        """When all that waits will have been played."""
        since = now if self.played_until is None else self.played_until
        return since + self._playback.waiting_samples / self._playback.rate_hz


_ROUNDING = 1e-3
"""Of a sample: seconds as floats fall short of whole samples by less."""

_NOTHING = Taken(b"", ())
