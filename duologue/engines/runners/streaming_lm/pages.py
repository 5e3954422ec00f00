"""Who holds which page of keys and values, and what a stream still sees.

Pages are appended to and slide out of the window; none is ever written over while somebody sees it,
so streams that began alike share their first pages. A stream that writes into a shared page gets a
copy of its own. Whoever is let in is promised room to grow by a stated number of frames; where
streams grow beyond what was promised and no page is left, the longest window becomes shorter, and
no call fails. A stream may pin its beginning: those pages stay, and in its table they move along
just before the window, so that what it sees is one run of entries all the same. This module is
pure: it knows numbers of pages, not what is in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from duologue.core.errors import CapacityError

RETRY_AFTER_S = 5.0
"""Calls end now and then; when the next one does, nobody knows."""


class CopyPage(NamedTuple):
    """Before anything is written, copy one page to another."""

    source: int
    target: int


class Shortened(NamedTuple):
    """A stream no longer sees what lies before a position, though its window would reach there."""

    slot: int
    first: int


Effect = CopyPage | Shortened


@dataclass(frozen=True, slots=True)
class PageLimits:
    """Sizes.

    Args:
        pages: How many there are, without the sink, which is page 0; theirs are 1 to ``pages``.
        page_frames: Positions of one page.
        window: How many positions a stream sees at most, its newest included.
        chunk: How many positions are written at once at most.
        growth_frames: What a stream that is let in is promised beyond its beginning.
        prefixes: How many beginnings are kept for others to share.
    """

    pages: int
    page_frames: int
    window: int
    chunk: int = 256
    growth_frames: int = 64
    prefixes: int = 32

    @property
    def width(self) -> int:
        """Entries of a stream's table: as many pages as it sees while a chunk is written."""
        return (self.window + self.chunk) // self.page_frames + 2

    def pages_for(self, frames: int) -> int:
        """Pages that hold so many positions, wherever in a page they begin."""
        return -(-frames // self.page_frames) + 1 if frames else 0

    @property
    def promised(self) -> int:
        """The most that a stream ever holds between steps."""
        return self.pages_for(self.window)


@dataclass(eq=False, slots=True)
class _Stream:
    """Pages by their place in the stream.

    Args:
        first: The oldest position that is seen, but for what is pinned; ``end``: the next one to
            be written.
        pinned: How many pages at the beginning stay.
        held: Place -> page, for the places that are pinned, and those from that of ``first`` to
            that of ``end - 1``.
    """

    first: int = 0
    end: int = 0
    pinned: int = 0
    held: dict[int, int] = field(default_factory=dict)


class Pages:
    """The pages of one pool, and the streams that hold them, by slot."""

    def __init__(self, limits: PageLimits) -> None:
        self._limits = limits
        self._free = list(range(limits.pages, 0, -1))
        self._holders = [0] * (limits.pages + 1)
        self._streams: dict[int, _Stream] = {}
        # In the order of use, the one that was used longest ago first.
        self._prefixes: dict[str, _Stream] = {}

    @property
    def free(self) -> int:
        """Pages that nobody holds."""
        return len(self._free)

    @property
    def kept(self) -> int:
        """Pages that are held by beginnings alone, which go when somebody needs them."""
        holders = Counter(page for each in self._prefixes.values() for page in each.held.values())
        return sum(1 for page, count in holders.items() if count == self._holders[page])

    def end(self, slot: int) -> int:
        """Return the next position that a stream writes."""
        return self._streams[slot].end

    def first(self, slot: int, position: int) -> int:
        """Return the oldest position that a row at ``position`` sees.

        Where a beginning is pinned, it counts as if it stood just before the window.
        """
        stream = self._streams[slot]
        if stream.pinned:
            return self._gap(stream) * self._limits.page_frames
        return max(stream.first, position - self._limits.window + 1)

    def kept_from(self, slot: int) -> int:
        """Return the oldest position that a stream may be taken back to."""
        stream = self._streams[slot]
        if stream.pinned:
            return stream.first
        return max(stream.first, stream.end - self._limits.window + 1)

    def seen(self, slot: int) -> int:
        """Return how many positions a stream sees, but for what is pinned."""
        return self.end(slot) - self.kept_from(slot)

    def table(self, slot: int) -> dict[int, int]:
        """Return the entries of a stream's table that matter: entry -> page."""
        width, stream = self._limits.width, self._streams[slot]
        gap = self._gap(stream)
        return {
            (place + gap if place < stream.pinned else place) % width: page
            for place, page in stream.held.items()
        }

    def pinned(self, slot: int) -> bool:
        """Tell whether a stream's beginning is pinned: then any of its entries may change."""
        return self._streams[slot].pinned > 0

    def entry(self, slot: int, position: int) -> tuple[int, int]:
        """Return where in a stream's table the page of a position stands, and the page."""
        place = position // self._limits.page_frames
        return place % self._limits.width, self._streams[slot].held[place]

    def admit(self, slot: int, frames: int, prefix: str | None = None) -> int:
        """Let a stream in.

        Args:
            slot: A free one.
            frames: How many positions it begins with.
            prefix: The name of a beginning that is kept, if it is.

        Returns:
            How many of its positions are there already.

        Raises:
            CapacityError: What has been promised to all would not be there.
        """
        assert slot not in self._streams, f"slot {slot} is taken"
        shared = self._prefixes.get(prefix or "")
        there = shared.end if shared is not None and shared.end <= frames else 0
        growth = self._limits.growth_frames
        wanted = min(self._limits.promised, self._limits.pages_for(frames + growth))
        owed = wanted - (there // self._limits.page_frames if there else 0)
        owed += sum(self._owed(stream) for stream in self._streams.values())
        others = (each for each in self._prefixes.values() if each is not shared)
        spare = sum(self._freed_by_dropping(each) for each in others)
        if owed > len(self._free) + spare:
            raise CapacityError(
                f"{len(self._free)} of {self._limits.pages} pages of this model's memory are free,"
                f" and {owed} have to be kept for the calls that it holds and this one",
                retry_after_s=RETRY_AFTER_S,
            )
        stream = self._streams[slot] = _Stream()
        if shared is not None and prefix is not None and there:
            self._copy(shared, stream)
            self._prefixes[prefix] = self._prefixes.pop(prefix)
        return there

    def extend(self, slot: int, count: int) -> list[Effect]:
        """Make room for a stream's next positions, and let go of what leaves its window.

        Args:
            count: As many as are written at once, at most ``chunk``.
        """
        limits, stream = self._limits, self._streams[slot]
        assert 0 < count <= limits.chunk, f"{count} positions at once, of at most {limits.chunk}"
        if count == 1 and self._goes_on(stream):
            stream.end += 1
            return []
        self._let_go_before(stream, self._oldest(stream))
        effects: list[Effect] = []
        begin, last = (at // limits.page_frames for at in (stream.end, stream.end + count - 1))
        for place in range(begin, last + 1):
            page = stream.held.get(place)
            if page is None:
                stream.held[place] = self._take(effects, stream)
            elif self._holders[page] > 1:
                copy = self._take(effects, stream)
                effects.append(CopyPage(page, copy))
                self._drop(page)
                stream.held[place] = copy
        stream.end += count
        return effects

    def _oldest(self, stream: _Stream) -> int:
        """Return the oldest position that a stream's next one may see."""
        frames = self._limits.page_frames
        left = stream.end - self._limits.window + 1
        if not stream.pinned or left < 0:
            return left
        # In whole pages, and one more goes, so that none has to go until the next one is full.
        return (left // frames + stream.pinned + 1) * frames

    def _gap(self, stream: _Stream) -> int:
        """How many places lie between what is pinned and the window."""
        if not stream.pinned:
            return 0
        return max(0, stream.first // self._limits.page_frames - stream.pinned)

    def _goes_on(self, stream: _Stream) -> bool:
        """Tell whether the next position is in a page of its own, and none leaves the window.

        So it is for most frames, at which nothing has to be looked for.
        """
        place, offset = divmod(stream.end, self._limits.page_frames)
        leaves = (stream.end - self._limits.window + 1) % self._limits.page_frames == 0
        return bool(offset) and not leaves and self._holders[stream.held[place]] == 1

    def truncate(self, slot: int, end: int) -> None:
        """Forget what a stream wrote from a position on, which must still be in its window."""
        stream = self._streams[slot]
        assert stream.first <= end <= stream.end, f"{end} is not in {stream.first}..{stream.end}"
        last = (end - 1) // self._limits.page_frames
        for place in [place for place in stream.held if place > last]:
            self._drop(stream.held.pop(place))
        stream.end = end

    def pin(self, slot: int, positions: int) -> None:
        """Let a stream that has not slid keep seeing its first positions, in whole pages.

        They count as part of its window, in which two pages must be left for what is new.
        """
        stream, limits = self._streams[slot], self._limits
        pages = -(-positions // limits.page_frames)
        assert not stream.first, "a stream that has slid has lost its beginning"
        assert (pages + 2) * limits.page_frames <= limits.window
        stream.pinned = pages

    def skip(self, slot: int, position: int) -> None:
        """Let a stream that has written nothing begin at a position; it sees nothing before."""
        stream = self._streams[slot]
        assert not stream.held, "a stream that has written cannot begin elsewhere"
        stream.first = stream.end = position
        stream.pinned = 0

    def fork(self, slot: int, target: int) -> None:
        """Let a stream begin with all that another one sees; the pages are shared."""
        assert target not in self._streams, f"slot {target} is taken"
        self._copy(self._streams[slot], self._streams.setdefault(target, _Stream()))

    def keep(self, slot: int, name: str) -> None:
        """Keep what a stream has written so far as a beginning that others may share."""
        stream = self._streams[slot]
        if name in self._prefixes or stream.first or not self._limits.prefixes:
            return
        while len(self._prefixes) >= self._limits.prefixes:
            self._drop_prefix(next(iter(self._prefixes)))
        self._copy(stream, self._prefixes.setdefault(name, _Stream()))
        self._prefixes[name].pinned = 0

    def knows(self, name: str) -> bool:
        """Tell whether a beginning is kept."""
        return name in self._prefixes

    def release(self, slot: int) -> None:
        """Let a stream go, with all its pages."""
        self._drop_all(self._streams.pop(slot).held.values())

    def _copy(self, source: _Stream, target: _Stream) -> None:
        target.first, target.end, target.held = source.first, source.end, dict(source.held)
        target.pinned = source.pinned
        for page in target.held.values():
            self._holders[page] += 1

    def _owed(self, stream: _Stream) -> int:
        limits = self._limits
        seen = min(limits.window, stream.end - stream.first + limits.growth_frames)
        own = sum(1 for page in stream.held.values() if self._holders[page] == 1)
        return max(0, min(limits.promised, limits.pages_for(seen)) - own)

    def _freed_by_dropping(self, prefix: _Stream) -> int:
        return sum(1 for page in prefix.held.values() if self._holders[page] == 1)

    def _take(self, effects: list[Effect], taker: _Stream) -> int:
        while not self._free and self._prefixes:
            self._drop_prefix(next(iter(self._prefixes)))
        while not self._free:
            effects.append(self._shorten(taker))
        page = self._free.pop()
        self._holders[page] = 1
        return page

    def _shorten(self, taker: _Stream) -> Shortened:
        """Take the oldest page of whoever sees most. Everybody keeps the page that it writes."""
        slot, stream = max(
            (item for item in self._streams.items() if len(item[1].held) > item[1].pinned + 1),
            key=lambda item: (len(item[1].held), item[1] is not taker),
        )
        oldest = min(place for place in stream.held if place >= stream.pinned)
        self._let_go_before(stream, (oldest + 1) * self._limits.page_frames)
        return Shortened(slot, stream.first)

    def _let_go_before(self, stream: _Stream, position: int) -> None:
        if position <= stream.first:
            return
        stream.first = position
        oldest = position // self._limits.page_frames
        for place in [place for place in stream.held if stream.pinned <= place < oldest]:
            self._drop(stream.held.pop(place))

    def _drop_prefix(self, name: str) -> None:
        self._drop_all(self._prefixes.pop(name).held.values())

    def _drop_all(self, pages: Iterable[int]) -> None:
        for page in pages:
            self._drop(page)

    def _drop(self, page: int) -> None:
        self._holders[page] -= 1
        if not self._holders[page]:
            self._free.append(page)
