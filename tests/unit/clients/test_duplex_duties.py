from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from duologue.clients.duplex_duties import HEARTBEAT_S, DuplexDuties
from duologue.clients.playback import Playback
from duologue.core.audio import samples_to_ms
from duologue.protocol.audio_formats import OpusFormat, PcmFormat, PcmuFormat
from duologue.protocol.duplex.commands import AcknowledgeEvents, AcknowledgePlayback, Heartbeat
from duologue.protocol.events import AudioCleared
from tests.fakes.server import refusal

RATE_HZ = 24_000
MS = RATE_HZ // 1000


def scene() -> tuple[DuplexDuties, Playback]:
    playback = Playback(RATE_HZ)
    return DuplexDuties(playback, 0.0), playback


def test_events_are_acknowledged_together_and_once() -> None:
    duties, _ = scene()
    for seq in (1, 2, 3):
        assert duties.accepts(seq)
        duties.on_event(AudioCleared(), seq)
    assert duties.due(0, 0.1) == [AcknowledgeEvents(server_event_seq=3)]
    assert duties.due(0, 0.2) == []
    assert not duties.accepts(3)
    assert duties.accepts(4)
    assert duties.accepts(None)
    assert duties.accepts(0)


def test_playback_is_acknowledged_as_it_is_heard_and_not_as_it_is_taken() -> None:
    duties, playback = scene()
    playback.put("i", 0, bytes(2 * 500 * MS))
    assert duties.due(0, 0.1) == []
    playback.take(100 * MS)
    (ack,) = duties.due(40 * MS, 0.2)
    assert ack == AcknowledgePlayback(event_id="played_1", item_id="i", played_ms=60)
    assert duties.due(40 * MS, 0.4) == []
    (ack,) = duties.due(0, 0.6)
    assert isinstance(ack, AcknowledgePlayback)
    assert ack.played_ms == 100


def test_an_item_that_was_cut_is_not_acknowledged_any_more() -> None:
    duties, playback = scene()
    playback.put("i", 0, bytes(2 * 500 * MS))
    playback.take(100 * MS)
    playback.silence()
    assert duties.due(0, 0.2) == []


def test_an_item_that_the_server_does_not_know_is_left_alone() -> None:
    duties, playback = scene()
    playback.put("i", 0, bytes(2 * 500 * MS))
    playback.take(100 * MS)
    duties.due(0, 0.2)
    duties.on_event(refusal("played_1", "playback_item_not_found"), None)
    playback.take(100 * MS)
    assert duties.due(0, 0.4) == []


def test_a_client_that_says_nothing_gives_a_sign_of_life() -> None:
    duties, _ = scene()
    assert duties.due(0, HEARTBEAT_S - 0.1) == []
    assert duties.due(0, HEARTBEAT_S) == [Heartbeat()]
    duties.spoke(HEARTBEAT_S)
    assert duties.due(0, 2 * HEARTBEAT_S - 0.1) == []


def test_audio_has_a_place_in_samples_while_it_keeps_its_format() -> None:
    duties, _ = scene()
    assert duties.place(bytes(960), PcmFormat()) == 0
    assert duties.place(bytes(480), PcmFormat()) == 480
    assert duties.place(bytes(480), PcmuFormat()) is None
    assert duties.place(bytes(480), PcmFormat()) is None
    other, _ = scene()
    packet = bytes([0, 3, 0b11111000, 1, 2])  # 20 ms
    assert [other.place(packet, OpusFormat(rate=24000)) for _ in range(2)] == [0, 480]


def test_after_a_lost_connection_all_is_said_again() -> None:
    duties, playback = scene()
    duties.on_event(AudioCleared(), 7)
    playback.put("item_a", 0, bytes(2 * 100 * MS))
    playback.take(50 * MS)
    said = [type(command) for command in duties.due(0, 0.1)]
    assert said == [AcknowledgeEvents, AcknowledgePlayback]
    assert duties.due(0, 0.2) == []
    duties.begin_again(anew=False)
    assert [type(command) for command in duties.due(0, 0.3)] == said
    assert not duties.accepts(7)
    duties.begin_again(anew=True)
    assert duties.accepts(1)


class Duties(RuleBasedStateMachine):
    """Acknowledgements only grow, and never say more than was received or heard."""

    def __init__(self) -> None:
        super().__init__()
        self.duties, self.playback = scene()
        self.now = 0.0
        self.received = 0
        self.acknowledged = 0
        self.played: dict[str, float] = {}
        self.items = 0
        self.unsounded = 0

    @rule(more=st.integers(1, 5))
    def events_come(self, more: int) -> None:
        for seq in range(self.received + 1, self.received + more + 1):
            assert self.duties.accepts(seq)
            self.duties.on_event(AudioCleared(), seq)
        self.received += more

    @rule(old=st.integers(1, 200))
    def an_event_comes_again(self, old: int) -> None:
        if old <= self.received:
            assert not self.duties.accepts(old)

    @rule(new=st.booleans(), milliseconds=st.integers(1, 400))
    def speech_comes(self, new: bool, milliseconds: int) -> None:
        self.items += new or self.items == 0
        self.playback.put(f"i{self.items}", 0, bytes(2 * milliseconds * MS))

    @rule(milliseconds=st.integers(1, 300))
    def the_speaker_takes(self, milliseconds: int) -> None:
        self.playback.take(milliseconds * MS)
        self.unsounded = min(milliseconds, 100) * MS

    @rule()
    def the_speaker_has_played(self) -> None:
        self.unsounded = 0

    @rule()
    def an_interruption(self) -> None:
        self.playback.silence(self.unsounded)
        self.unsounded = 0

    @rule(seconds=st.floats(0, 40))
    def it_is_time(self, seconds: float) -> None:
        self.now += seconds
        for command in self.duties.due(self.unsounded, self.now):
            self.duties.spoke(self.now)
            match command:
                case AcknowledgeEvents(server_event_seq=seq):
                    assert self.acknowledged < seq <= self.received
                    self.acknowledged = seq
                case AcknowledgePlayback(item_id=str() as item_id, played_ms=played_ms):
                    heard = self.playback.heard_samples(item_id)
                    assert self.played.get(item_id, 0) < played_ms <= samples_to_ms(heard, RATE_HZ)
                    self.played[item_id] = played_ms
        assert self.acknowledged == self.received

    @invariant()
    def what_is_remembered_is_bounded(self) -> None:
        assert len(self.duties._acks) <= 2 * 64 + 9


TestDuties = Duties.TestCase
