"""What was sent against what was heard."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from duologue.sessions.speaking.playback import REMEMBERED_ITEMS, PlaybackLedger
from duologue.sessions.speaking.silencer import Silencer

RATE_HZ = 1000
"""One sample is a millisecond."""

T = 100.0
"""When the test begins."""


def make_ledger(sent: int = 0) -> PlaybackLedger:
    ledger = PlaybackLedger(RATE_HZ, Silencer())
    if sent:
        ledger.on_sent("a", sent, T)
    return ledger


def test_without_the_clients_word_time_tells_what_was_heard() -> None:
    ledger = make_ledger(2000)
    assert [ledger.heard_samples("a", T + s) for s in (0, 0.5, 1.999, 2, 60)] == [
        0,
        500,
        1999,
        2000,
        2000,
    ]
    assert ledger.lead_s(T + 0.5) == 1.5
    assert ledger.lead_s(T + 3) == 0


def test_nobody_hears_during_a_gap_in_what_was_sent() -> None:
    ledger = make_ledger(1000)
    ledger.on_sent("a", 1000, T + 5)
    assert ledger.heard_samples("a", T + 5.5) == 1500
    assert ledger.lead_s(T + 5.5) == 0.5


def test_what_is_sent_while_earlier_audio_plays_is_heard_after_it() -> None:
    ledger = make_ledger(1000)
    ledger.on_sent("b", 1000, T)
    assert ledger.heard_samples("b", T + 1) == 0
    assert ledger.heard_samples("b", T + 1.5) == 500
    assert ledger.playing(T + 0.5) == ["a", "b"]
    assert ledger.playing(T + 1.5) == ["b"]
    assert ledger.playing(T + 2) == []


def test_an_interruption_stops_playback_where_it_is() -> None:
    ledger = make_ledger(2000)
    assert ledger.interrupt("a", T + 0.5) == 500
    assert ledger.lead_s(T + 0.5) == 0
    assert ledger.playing(T + 0.5) == []
    assert ledger.heard_samples("a", T + 60) == 500


def test_interrupting_one_answer_does_not_end_the_playback_of_another() -> None:
    ledger = make_ledger(2000)
    ledger.on_sent("b", 1000, T)
    assert ledger.interrupt("b", T + 0.5) == 0
    assert ledger.lead_s(T + 0.5) == 1.5
    assert ledger.playing(T + 0.5) == ["a"]


def test_interrupting_what_was_never_sent_changes_nothing() -> None:
    ledger = make_ledger(2000)
    assert ledger.interrupt("b", T + 0.5) == 0
    assert ledger.lead_s(T + 0.5) == 1.5
    assert ledger.heard_samples("b", T + 9) == 0


def test_the_first_word_of_the_client_replaces_the_servers_cut() -> None:
    ledger = make_ledger(2000)
    ledger.interrupt("a", T + 0.5)
    assert ledger.truncate("a", 700, T + 0.6) == 700
    assert ledger.heard_samples("a", T + 60) == 700


def test_cuts_of_the_client_only_shrink() -> None:
    ledger = make_ledger(2000)
    assert [ledger.truncate("a", ms, T + 1) for ms in (1000, 1500, 500)] == [1000, 1000, 500]


def test_a_cut_is_never_beyond_what_was_sent() -> None:
    assert make_ledger(2000).truncate("a", 10**12, T) == 2000


def test_a_cut_ends_the_playback() -> None:
    ledger = make_ledger(2000)
    ledger.truncate("a", 300, T + 0.5)
    assert ledger.lead_s(T + 0.5) == 0
    assert ledger.playing(T + 0.5) == []


def test_a_cut_of_an_earlier_answer_leaves_the_later_one_playing() -> None:
    ledger = make_ledger(1000)
    ledger.on_sent("b", 1000, T)
    ledger.truncate("a", 300, T + 0.5)
    assert ledger.playing(T + 0.5) == ["b"]
    assert ledger.lead_s(T + 0.5) == 1.5


def test_what_was_never_sent_cannot_be_cut() -> None:
    assert make_ledger().truncate("a", 300, T) is None


def test_the_clients_acknowledgements_count_more_than_time() -> None:
    ledger = make_ledger(2000)
    ledger.on_acknowledged("a", 300)
    assert ledger.heard_samples("a", T + 1) == 300
    assert ledger.interrupt("a", T + 1) == 300


@pytest.mark.parametrize(("acknowledged_ms", "heard"), [((500, 300), 500), ((9000,), 2000)])
def test_acknowledgements_only_grow_up_to_what_was_sent(
    acknowledged_ms: tuple[int, ...], heard: int
) -> None:
    ledger = make_ledger(2000)
    for ms in acknowledged_ms:
        ledger.on_acknowledged("a", ms)
    assert ledger.heard_samples("a", T) == heard


def test_an_acknowledgement_of_what_was_never_sent_counts_nothing() -> None:
    ledger = make_ledger()
    ledger.on_acknowledged("a", 300)
    assert ledger.heard_samples("a", T) == 0


def test_only_so_many_items_are_remembered() -> None:
    ledger = make_ledger()
    for number in range(REMEMBERED_ITEMS + 1):
        ledger.on_sent(str(number), 10, T)
    assert ledger.truncate("0", 5, T) is None
    assert ledger.truncate("1", 5, T) == 5


@given(
    pieces=st.lists(st.tuples(st.floats(0, 5), st.integers(1, 3000)), min_size=1, max_size=20),
    later=st.floats(0, 60),
)
def test_the_estimate_is_a_timeline_with_gaps(
    pieces: list[tuple[float, int]], later: float
) -> None:
    ledger, now, ends_at = make_ledger(), T, T
    heard_before = 0
    for wait_s, samples in pieces:
        now += wait_s
        assert ledger.heard_samples("a", now) >= heard_before
        heard_before = ledger.heard_samples("a", now)
        ledger.on_sent("a", samples, now)
        ends_at = max(ends_at, now) + samples / RATE_HZ
    sent = sum(samples for _, samples in pieces)
    unheard = max(0.0, ends_at - now - later) * RATE_HZ
    assert abs(ledger.heard_samples("a", now + later) - (sent - unheard)) <= 1


class LedgerModel(RuleBasedStateMachine):
    """Bounds that hold in every order of events."""

    @initialize()
    def start(self) -> None:
        self.ledger, self.now = make_ledger(), T
        self.sent = dict.fromkeys("abc", 0)
        self.client_cut: dict[str, int] = {}

    @rule(item=st.sampled_from("abc"), samples=st.integers(1, 3000))
    def send(self, item: str, samples: int) -> None:
        self.ledger.on_sent(item, samples, self.now)
        self.sent[item] += samples

    @rule(seconds=st.floats(0, 3))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(item=st.sampled_from("abc"), heard_ms=st.integers(0, 5000), timed=st.booleans())
    def acknowledge(self, item: str, heard_ms: int, timed: bool) -> None:
        before = self.ledger.heard_samples(item, self.now)
        heard = self.ledger.on_acknowledged(item, heard_ms, self.now if timed else None)
        if heard is None:
            assert self.sent[item] == 0
        else:
            assert heard == self.ledger.heard_samples(item, self.now)
            assert heard >= min(before, heard_ms, self.sent[item])

    @rule(only=st.booleans())
    def choose_what_counts(self, only: bool) -> None:
        self.ledger.only_acknowledged = only

    @rule(item=st.sampled_from("abc"))
    def interrupt(self, item: str) -> None:
        heard = self.ledger.interrupt(item, self.now)
        assert heard == self.ledger.heard_samples(item, self.now)
        assert item not in self.ledger.playing(self.now)

    @rule(item=st.sampled_from("abc"), end_ms=st.integers(0, 5000))
    def truncate(self, item: str, end_ms: int) -> None:
        cut = self.ledger.truncate(item, end_ms, self.now)
        if cut is not None:
            assert cut <= min(end_ms, self.client_cut.get(item, cut))
            self.client_cut[item] = cut

    @invariant()
    def nobody_hears_what_was_not_sent_or_what_the_client_cut(self) -> None:
        if not hasattr(self, "ledger"):
            return
        for item, sent in self.sent.items():
            heard = self.ledger.heard_samples(item, self.now)
            assert 0 <= heard <= sent
            assert heard == self.client_cut.get(item, heard)

    @invariant()
    def there_is_a_lead_while_something_plays(self) -> None:
        if hasattr(self, "ledger"):
            playing = self.ledger.playing(self.now)
            assert bool(playing) is (self.ledger.lead_s(self.now) > 0)


def test_where_only_acknowledgements_count_time_counts_nothing() -> None:
    ledger = make_ledger(2000)
    ledger.only_acknowledged = True
    assert ledger.heard_samples("a", T + 5) == 0
    ledger.on_acknowledged("a", 300)
    assert ledger.interrupt("a", T + 5) == 300


def test_an_acknowledgement_replaces_the_servers_cut() -> None:
    ledger = make_ledger(2000)
    assert ledger.interrupt("a", T + 1) == 1000
    assert ledger.on_acknowledged("a", 400, T + 1) == 400
    assert ledger.heard_samples("a", T + 1) == 400
    assert ledger.on_acknowledged("a", 700, T + 1) == 700
    assert ledger.playing(T + 1) == []


def test_the_clients_position_moves_what_is_yet_to_be_heard() -> None:
    ledger = make_ledger(2000)
    ledger.on_acknowledged("a", 500, T + 1.5)
    assert ledger.lead_s(T + 1.5) == 1.5
    ledger.on_acknowledged("a", 500, T + 1.9)
    assert ledger.lead_s(T + 1.9) == pytest.approx(1.1)
    assert ledger.sent_samples("a") == 2000
    assert ledger.sent_samples("b") == 0
    assert ledger.on_acknowledged("b", 5, T) is None


def test_only_a_cut_of_the_client_is_the_clients_word() -> None:
    ledger = make_ledger(2000)
    ledger.interrupt("a", T + 1)
    assert ledger.client_cut("a") is None
    ledger.truncate("a", 700, T + 1)
    assert ledger.client_cut("a") == 700
    assert ledger.client_cut("b") is None


TestLedgerModel = LedgerModel.TestCase
TestLedgerModel.settings = settings(max_examples=settings().max_examples // 4)
