"""The journal: what is kept for the next connection, within bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from duologue.protocol.events import AudioCleared, Event
from duologue.protocol.response_events import AudioDelta, AudioTranscriptDelta
from duologue.sessions.port import Delivery
from duologue.sessions.resumption.journal import SPARE_SHARE, Gap, Journal
from duologue.sessions.speaking.output_buffer import EVENT_BYTES


@dataclass
class Held:
    """What else is in the account."""

    held_bytes: int


def sound(size: int = 1000, item: str = "i") -> AudioDelta:
    return AudioDelta(
        response_id="r", item_id=item, output_index=0, content_index=0, delta=b"\x01" * size
    )


def words(text: str = "word", item: str = "i") -> AudioTranscriptDelta:
    return AudioTranscriptDelta(
        response_id="r", item_id=item, output_index=0, content_index=0, delta=text
    )


def journal_of(*events: Event, max_bytes: int = 1 << 20, also: int = 0) -> Journal:
    journal = Journal(max_bytes, Held(also))
    for seq, event in enumerate(events, 1):
        journal.record([Delivery(seq, event)])
    return journal


def replayed(journal: Journal, after: int = 0) -> list[int]:
    journal.rewind(after)
    numbers = []
    while journal.replaying:
        numbers.append(journal.replay().seq)
    return numbers


def test_what_follows_a_number_is_sent_again_in_order() -> None:
    journal = journal_of(sound(), words(), AudioCleared(), sound())
    assert replayed(journal, 2) == [3, 4]
    assert replayed(journal) == [1, 2, 3, 4]
    assert replayed(journal, 4) == []
    assert journal.after(0) is Gap.NONE


def test_what_is_acknowledged_is_dropped() -> None:
    journal = journal_of(sound(), words(), sound())
    journal.acknowledge(2)
    assert (len(journal), journal.acknowledged) == (1, 2)
    assert journal.held_bytes == EVENT_BYTES + 1000
    assert replayed(journal) == [3]
    journal.acknowledge(1)
    assert journal.acknowledged == 2


def test_an_interruption_takes_back_sound_and_leaves_words() -> None:
    journal = journal_of(sound(item="a"), words(item="a"), sound(item="b"), sound(item="a"))
    journal.rewind(1)
    assert journal.replay().seq == 2
    journal.withdraw("a")
    assert [journal.replay().seq for _ in range(1)] == [3]
    assert not journal.replaying
    assert replayed(journal) == [2, 3]
    # What nobody is to hear is not missing.
    assert journal.after(0) is Gap.NONE
    journal.withdraw("b")
    journal.withdraw("b")
    assert journal.held_bytes == journal.count_held() == EVENT_BYTES + 4


def test_sound_goes_first_and_its_loss_is_known() -> None:
    size = EVENT_BYTES + 1000
    journal = journal_of(words(""), *[sound()] * 10, words(""), max_bytes=8 * size)
    kept = replayed(journal)
    assert kept[0] == 1
    assert kept[-1] == 12
    lost = kept[1] - 1
    assert journal.after(0) is journal.after(lost - 1) is Gap.SOUND
    assert journal.after(lost) is Gap.NONE
    assert journal.held_bytes <= 8 * size
    assert journal.held_bytes > 8 * size * (SPARE_SHARE - 2) / SPARE_SHARE - size


def test_without_sound_the_oldest_go_and_their_loss_is_known() -> None:
    journal = journal_of(*[words("")] * 100, max_bytes=16 * EVENT_BYTES)
    kept = replayed(journal)
    assert kept == list(range(kept[0], 101))
    assert journal.after(kept[0] - 2) is Gap.EVENTS
    assert journal.after(kept[0] - 1) is Gap.NONE


def test_what_is_held_elsewhere_counts() -> None:
    beside = Held(0)
    journal = Journal(10_000, beside)
    for seq in range(1, 8):
        journal.record([Delivery(seq, sound())])
    assert len(journal) == 7
    beside.held_bytes = 9_000
    journal.fit()
    assert journal.held_bytes + beside.held_bytes <= 10_000
    assert journal.after(0) is Gap.SOUND
    beside.held_bytes = 0
    journal.fit()
    assert len(journal) == 0
    assert not journal.broken_off


@pytest.mark.parametrize("kind", [sound, lambda: words("x" * 1000)])
def test_what_waits_to_be_sent_again_is_not_dropped_without_a_word(
    kind: Callable[[], Event],
) -> None:
    beside = Held(0)
    journal = Journal(20_000, beside)
    for seq in range(1, 8):
        journal.record([Delivery(seq, kind())])
    journal.rewind(2)
    assert journal.replay().seq == 3
    beside.held_bytes = 15_000
    journal.fit()
    assert journal.broken_off
    journal.rewind(2)
    assert not journal.broken_off


def test_what_goes_while_it_is_sent_again_is_not_sent() -> None:
    journal = journal_of(*[sound()] * 6)
    journal.rewind(0)
    assert journal.replay().seq == 1
    journal.acknowledge(4)
    assert list(journal.still_to_replay()) == [sound()] * 2
    assert [journal.replay().seq, journal.replay().seq] == [5, 6]
    journal.rewind(0)
    journal.clear()
    assert not journal.replaying
    assert (len(journal), journal.held_bytes, journal.acknowledged) == (0, 0, 6)
    journal.clear()


class JournalModel(RuleBasedStateMachine):
    """Against a list that forgets nothing: bounded, accounted, and no loss without a word."""

    LIMIT = 20_000

    def __init__(self) -> None:
        super().__init__()
        self.beside = Held(0)
        self.journal = Journal(self.LIMIT, self.beside)
        self.sent: list[Event] = []
        self.withdrawn: set[int] = set()
        self.replaying: int | None = None

    @rule(size=st.integers(0, 5000), item=st.sampled_from("abc"))
    def sound_is_sent(self, size: int, item: str) -> None:
        self._send(sound(size, item))

    @rule(size=st.integers(0, 300), item=st.sampled_from("abc"))
    def words_are_sent(self, size: int, item: str) -> None:
        self._send(words("x" * size, item))

    @precondition(lambda self: self.sent)
    @rule(which=st.integers(0, 40))
    def client_acknowledges(self, which: int) -> None:
        self.journal.acknowledge(max(0, len(self.sent) - which))

    @rule(item=st.sampled_from("abc"))
    def an_interruption(self, item: str) -> None:
        self.journal.withdraw(item)
        for seq, event in enumerate(self.sent, 1):
            if isinstance(event, AudioDelta) and event.item_id == item:
                self.withdrawn.add(seq)

    @rule(held=st.integers(0, 15_000))
    def other_bytes_are_held(self, held: int) -> None:
        self.beside.held_bytes = held
        self.journal.fit()

    @rule(back=st.integers(0, 40))
    def client_resumes(self, back: int) -> None:
        after = max(len(self.sent) - back, self.journal.acknowledged)
        gap = self.journal.after(after)
        numbers = replayed(self.journal, after)
        wanted = [s for s in range(after + 1, len(self.sent) + 1) if s not in self.withdrawn]
        assert numbers == sorted(numbers)
        missing = set(wanted) - set(numbers)
        assert set(numbers) <= set(wanted)
        if gap is Gap.NONE:
            assert not missing
        elif gap is Gap.SOUND:
            assert all(isinstance(self.sent[seq - 1], AudioDelta) for seq in missing)

    def _send(self, event: Event) -> None:
        self.sent.append(event)
        self.journal.record([Delivery(len(self.sent), event)])

    @invariant()
    def bounded_and_accounted(self) -> None:
        journal = self.journal
        assert journal.held_bytes == journal.count_held()
        assert journal.held_bytes + self.beside.held_bytes <= self.LIMIT or len(journal) == 0


TestJournalState = JournalModel.TestCase


@pytest.mark.parametrize("acknowledged", [0, 3])
def test_an_empty_journal_has_no_gap(acknowledged: int) -> None:
    journal = journal_of()
    journal.acknowledge(acknowledged)
    assert journal.after(acknowledged) is Gap.NONE
    assert replayed(journal) == []
