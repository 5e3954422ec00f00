from __future__ import annotations

import msgspec
import pytest

from duologue.duplex_plugins.contract import Interrupted
from duologue.engines.payloads import AudioChunk, SpeechMark, TextDelta
from duologue.protocol.commands import CancelResponse, CreateResponse, TruncateItem
from duologue.protocol.duplex.commands import AcknowledgePlayback, BargeIn
from duologue.protocol.duplex.config import PlaybackCommitPolicy
from duologue.protocol.duplex.events import AcknowledgedPosition, PlaybackAcknowledged
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.items import MessageItem
from duologue.protocol.response_events import ResponseCreated
from duologue.sessions.history.entry import Spoken
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin

TEXT = "one two three four"
"""A word each 500 ms."""


class Bench:
    """A call in which an answer of 2 s was said and sent."""

    def __init__(
        self, policy: PlaybackCommitPolicy = "commit_all_on_done", *, whole: bool = True
    ) -> None:
        self.plugin = FakePlugin()
        engine = FakeEngine(pipelines=(STAGE,))
        self.call = FakeCall(self.plugin, engine, patch=DuplexPatch(playback_commit_policy=policy))
        self.call.send(CreateResponse())
        self.response_id = self.call.client.last(ResponseCreated).response.id
        (stage,) = engine.of(STAGE)
        engine.output(stage.request.id, TextDelta(TEXT))
        engine.output(stage.request.id, AudioChunk(bytes(2 * 48000), 24000))
        for end, sample in ((3, 12000), (7, 24000), (13, 36000), (18, 48000)):
            engine.output(stage.request.id, SpeechMark(end, sample))
        if whole:
            engine.complete(stage.request.id)
        (self.entry,) = [e for e in self.call.machine.history._entries if e.spoken]
        self.item_id = self.entry.item.id

    @property
    def heard(self) -> str:
        assert self.entry.spoken is not None
        return self.entry.spoken.heard_text()

    def ack(self, played_ms: float, **fields) -> AcknowledgedPosition:
        self.call.send(AcknowledgePlayback(played_ms=played_ms, **fields))
        return self.call.client.last(PlaybackAcknowledged).event

    def refused(self, **fields) -> str:
        before = len(self.call.client.of(PlaybackAcknowledged))
        self.call.send(AcknowledgePlayback(played_ms=5, event_id="e", **fields))
        assert len(self.call.client.of(PlaybackAcknowledged)) == before
        error = self.call.client.error().error
        assert error.event_id == "e"
        assert error.code is not None
        return error.code


def test_an_answer_that_was_said_is_remembered_whole_whatever_is_acknowledged() -> None:
    bench = Bench()
    position = bench.ack(500)
    assert (position.response_id, position.item_id) == (bench.response_id, bench.item_id)
    assert position.playback.generated_ms == position.playback.sent_ms == 2000
    assert (position.played_ms, position.committed_ms) == (500, 2000)
    assert position.history_committed
    assert bench.heard == TEXT


def test_at_an_interruption_the_clients_word_counts_and_not_the_clock() -> None:
    bench = Bench()
    bench.ack(1000)
    bench.call.clock.advance(0.4)
    bench.call.send(BargeIn())
    assert bench.heard == "one two"
    assert bench.plugin.of(Interrupted)[-1].heard == "one two"


def test_what_the_client_says_after_an_interruption_replaces_the_estimate() -> None:
    bench = Bench()
    bench.call.clock.advance(1.7)
    bench.call.send(BargeIn())
    assert bench.heard == "one two three"
    assert bench.ack(600).committed_ms == 600
    assert bench.heard == "one"
    # It may have been on its way when the client stopped: it grows, never beyond what was sent.
    assert bench.ack(1100).epoch == 0
    assert bench.heard == "one two"
    bench.ack(10**9)
    assert bench.heard == TEXT
    assert bench.plugin.of(Interrupted)[-1].heard == TEXT


@pytest.mark.parametrize("truncate", [False, True])
@pytest.mark.parametrize("huge", [1e18, 1e308, float("inf")])
def test_a_position_past_everything_is_the_end_of_what_was_sent(
    huge: float, truncate: bool
) -> None:
    bench = Bench()
    position = bench.ack(huge, committed_ms=huge, truncate=truncate)
    assert position.playback.played_ms == position.playback.committed_ms == 2000
    assert bench.ack(40, committed_ms=huge).playback.committed_ms == 2000


@pytest.mark.parametrize("none", [-1e308, float("-inf"), float("nan")])
def test_a_position_before_everything_is_the_beginning(none: float) -> None:
    assert Bench().ack(none, truncate=True).playback.played_ms == 0


def test_a_cut_by_the_client_never_grows() -> None:
    bench = Bench()
    assert bench.ack(1200, truncate=True).truncate
    assert bench.heard == "one two"
    bench.ack(2000)
    assert bench.heard == "one two"
    bench.call.send(TruncateItem(item_id=bench.item_id, audio_end_ms=1900))
    assert bench.heard == "one two"
    bench.ack(700, truncate=True)
    assert bench.heard == "one"


def test_where_only_acknowledgements_count_nothing_else_is_remembered() -> None:
    bench = Bench("ack_only")
    bench.call.clock.advance(10)
    assert bench.heard == ""
    assert not bench.ack(1000).history_committed
    assert bench.heard == "one two"
    assert bench.ack(1500, committed_ms=1200).committed_ms == 1200
    assert bench.heard == "one two"
    position = bench.ack(2000)
    assert bench.heard == TEXT
    assert position.history_committed


def test_an_answer_that_goes_on_is_never_whole() -> None:
    bench = Bench("ack_only", whole=False)
    assert not bench.ack(2000).history_committed
    bench.call.send(CancelResponse())
    assert bench.heard == TEXT
    assert bench.ack(2000).epoch == 1


def test_acknowledgements_keep_the_pace() -> None:
    bench = Bench()
    bench.call.clock.advance(1.5)
    playback = bench.call.machine.speaking.playback
    assert playback.lead_s(bench.call.clock.now()) == pytest.approx(0.5)
    bench.ack(500)
    assert playback.lead_s(bench.call.clock.now()) == pytest.approx(1.5)


def test_the_answer_may_be_named_in_any_way_or_not_at_all() -> None:
    bench = Bench()
    for names in (
        {},
        {"response_id": bench.response_id},
        {"item_id": bench.item_id},
        {"item_id": f"item_{bench.response_id}"},
        {"response_id": bench.response_id, "item_id": f"item_{bench.response_id}"},
    ):
        assert bench.ack(300, **names).item_id == bench.item_id


def test_an_answer_of_several_items_is_one_to_the_person_who_hears_it() -> None:
    call = FakeCall(FakePlugin(), patch=DuplexPatch(playback_commit_policy="ack_only"))
    history, playback = call.machine.history, call.machine.speaking.playback
    for name in ("a", "b"):
        entry = history.add(MessageItem(id=name, role="assistant"))
        entry.spoken = Spoken("r", 24000, name, samples=24000, complete=True, cut_sample=0)
        playback.on_sent(name, 24000, call.clock.now())

    def held() -> list[int | None]:
        spoken = [history.get(name).spoken for name in ("a", "b")]
        return [None if each is None else each.cut_sample for each in spoken]

    def ack(played_ms: float, **fields) -> AcknowledgedPosition:
        call.send(AcknowledgePlayback(played_ms=played_ms, **fields))
        return call.client.last(PlaybackAcknowledged).event

    assert ack(500, response_id="r").item_id == "a"
    assert held() == [12000, 0]
    position = ack(1250, response_id="r")
    assert (position.item_id, position.played_ms) == ("b", 1250)
    assert position.playback.sent_ms == 2000
    assert held() == [None, 6000]
    assert ack(500, item_id="b").played_ms == 500
    assert ack(750, response_id="r", item_id="b").item_id == "b"
    assert held() == [None, 18000]
    assert ack(2000).history_committed
    assert ack(200, response_id="r", truncate=True).committed_ms == 200
    assert held() == [4800, 0]


def test_a_cut_before_anything_was_sent_leaves_nothing() -> None:
    bench = Bench(whole=False)
    bench.entry.item = msgspec.structs.replace(bench.entry.item, id="unsent")
    bench.call.machine.history._by_id["unsent"] = bench.entry
    bench.ack(100, item_id="unsent", truncate=True)
    assert bench.heard == ""


def test_an_answer_that_is_none_is_refused() -> None:
    assert Bench().refused(response_id="nobody") == "playback_item_not_found"
    assert Bench().refused(item_id="nothing") == "playback_item_not_found"


def test_ids_that_contradict_each_other_are_refused() -> None:
    bench = Bench()
    code = bench.refused(response_id=bench.response_id, item_id="another")
    assert code == "playback_item_mismatch"


def test_before_the_first_answer_there_is_nothing_to_acknowledge() -> None:
    call = FakeCall(FakePlugin(), patch=DuplexPatch())
    call.send(AcknowledgePlayback(played_ms=1))
    assert call.client.error().error.code == "playback_item_not_found"
