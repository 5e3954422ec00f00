"""Answers out of frames, and what an interruption does to a model that goes on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from duologue.duplex_plugins.contract import (
    AppendToRequest,
    AudienceChanged,
    BeginResponse,
    ConfigChanged,
    EndResponse,
    Interrupted,
    PluginConfig,
    PluginEffect,
    RequestEnded,
    RequestFailed,
    RequestOutput,
    ResponseOutcome,
    ResponseRequested,
    SayAudio,
    SayText,
    StartRequest,
    StopRequest,
    Tick,
)
from duologue.duplex_plugins.lockstep.plugin import STREAM, STUCK, LockstepModel
from duologue.duplex_plugins.lockstep.settings import LockstepSettings
from duologue.duplex_plugins.persona import Draws, Persona
from duologue.duplex_plugins.stream_noted import StreamNoted
from duologue.engines.frame_counts import FrameCounts
from duologue.engines.payloads import (
    NOT_SAID,
    LockstepFrame,
    LockstepFreeze,
    LockstepNews,
    LockstepStart,
    LockstepTaste,
    SpeechMark,
)
from tests.unit.duplex_plugins.lockstep.stream import (
    HEARD,
    SILENCE,
    Bench,
    chunks_of,
    heard_of,
    loud,
    rewinds_of,
    start_of,
)


def talking(frames: int = 3) -> Bench:
    """A bench whose model is in the midst of its first answer."""
    bench = Bench()
    bench.configure()
    bench.give(HEARD)
    bench.loud(frames)
    return bench


def test_capabilities_are_what_is_enforced() -> None:
    able = Bench().plugin.capabilities()
    assert able.decides_turns
    assert able.hears_audio
    assert (able.frame_ms, able.lead_ms, able.backlog_ms) == (80, 240, 480)
    assert able.input_rate_hz == able.output_rate_hz == 24_000
    assert able.voices == ("anna", "bert")
    assert able.persona == Persona(reads_instructions=False, stays=True, sampling=True)


# Hearing


def test_the_stream_begins_when_the_person_is_heard_and_gets_all_audio() -> None:
    bench = Bench()
    assert bench.configure(voice="bert", instructions="Be kind.") == []
    effects = bench.give(HEARD)
    assert start_of(effects) == LockstepStart(voice="bert")
    assert chunks_of(effects)[0].pcm == SILENCE
    later = bench.give(HEARD)
    assert [type(effect) for effect in later] == [AppendToRequest]


def test_a_model_that_reads_instructions_is_given_them() -> None:
    model = LockstepModel(pipeline="model", reads_instructions=True, pins_persona=True)
    bench = Bench(LockstepSettings(seed=7), model)
    bench.configure(instructions="Be kind.")
    wanted = LockstepStart("Be kind.", "default", seed=7, pins_persona=True)
    assert start_of(bench.give(HEARD)) == wanted


def test_it_becomes_another_person_only_before_it_has_spoken() -> None:
    bench = Bench()
    bench.configure(voice="anna")
    bench.give(HEARD)
    assert bench.configure(voice="anna") == []
    effects = bench.configure(voice="bert")
    assert isinstance(effects[0], StopRequest)
    assert start_of(effects).voice == "bert"
    bench.loud(1)
    assert bench.configure(voice="anna") == []


def test_audio_before_the_client_has_said_what_it_wants_is_let_pass_for_a_while() -> None:
    bench = Bench()
    bench.give(ConfigChanged(PluginConfig(), by_client=False))
    assert [bench.give(HEARD) for _ in range(6)] == [[]] * 6
    start_of(bench.give(HEARD))


def test_once_it_has_said_so_all_is_heard() -> None:
    bench = Bench()
    bench.give(ConfigChanged(PluginConfig(), by_client=False))
    bench.give(HEARD)
    assert bench.configure(voice="bert") == []
    assert start_of(bench.give(HEARD)).voice == "bert"


# Answers


def test_an_answer_begins_with_the_first_frame_that_can_be_heard() -> None:
    bench = talking(0)
    assert bench.quiet(4) == []
    assert heard_of(bench.loud(2)) == [("r1", 4), ("r1", 5)]


def test_an_answer_begins_with_a_word_too() -> None:
    bench = talking(0)
    effects = bench.tick(SILENCE, " Hello")
    assert effects == [
        BeginResponse(),
        SayText("r1", "Hello"),
        SayAudio("r1", SILENCE, (SpeechMark(5, 1920),)),
    ]
    assert bench.tick(loud(1), " there") == [
        SayText("r1", " there"),
        SayAudio("r1", loud(1), (SpeechMark(11, 3840),)),
    ]


def test_short_pauses_belong_to_an_answer_and_a_long_one_ends_it() -> None:
    bench = talking(1)
    effects = [*bench.quiet(4), *bench.loud(1)]
    assert len([each for each in effects if isinstance(each, SayAudio)]) == 5
    *said, end = bench.quiet(5)
    assert all(isinstance(each, SayAudio) for each in said)
    assert end == EndResponse("r1")
    assert bench.quiet(3) == []
    assert heard_of(bench.loud(1)) == [("r2", 14)]


def test_a_frame_whose_answer_was_not_granted_is_not_said_later() -> None:
    bench = talking(0)
    (asked,) = bench.plugin.step(bench.state, RequestOutput(STREAM, LockstepFrame(0, loud(0))))
    assert asked == BeginResponse()
    bench.plugin.step(bench.state, Tick(1))
    assert list(bench.request()) == []


def test_a_client_may_ask_for_an_answer_and_gets_the_next_one() -> None:
    bench = talking(0)
    assert bench.request() == []
    assert bench.quiet(3) == []
    assert heard_of(bench.loud(1)) == [("r1", 3)]


def test_an_answer_asked_for_starts_the_stream() -> None:
    assert start_of(Bench().request()).voice == "anna"


def test_an_answer_that_does_not_come_is_given_up() -> None:
    bench = talking(0)
    bench.request()
    assert bench.quiet(5) == [EndResponse("r1")]


def test_beside_the_conversation_it_says_nothing() -> None:
    beside = ResponseRequested("r9", (), PluginConfig(), out_of_band=True)
    bench = talking()
    assert bench.give(beside) == [EndResponse("r9", ResponseOutcome.FAILED, "unsupported")]
    assert heard_of(bench.loud(1)) == [("r1", 3)]


# Interruptions


def test_after_an_interruption_the_sentence_does_not_go_on() -> None:
    bench = talking()
    assert bench.give(Interrupted("r1", "")) == []
    assert bench.loud(4) == []
    assert bench.quiet(2) == []
    assert heard_of(bench.loud(2)) == [("r2", 9), ("r2", 10)]


def test_a_pause_must_be_one_and_not_the_gap_between_two_words() -> None:
    bench = talking()
    bench.give(Interrupted("r1", ""))
    assert [*bench.loud(2), *bench.quiet(1), *bench.loud(2)] == []


def test_a_model_that_does_not_pause_is_heard_again_after_a_bound() -> None:
    bench = talking()
    bench.give(Interrupted("r1", ""))
    assert heard_of(bench.loud(10)) == [("r2", 12)]


def test_an_answer_of_which_nothing_was_said_holds_nothing_back() -> None:
    bench = talking(0)
    bench.request()
    bench.give(Interrupted("r1", ""))
    assert heard_of(bench.loud(1)) == [("r2", 0)]


def test_where_playback_ended_the_model_is_taken_back_to() -> None:
    bench = talking(5)
    bench.give(Interrupted("r1", ""))
    assert rewinds_of(bench.give(Interrupted("r1", "", cut_sample=1920 + 1))) == [2]
    assert bench.loud(3) == [], "they were on their way"
    bench.rewinds = 1
    assert heard_of(bench.loud(1)) == [("r2", 8)], "it was silent, so nothing is held"


def test_a_second_cut_takes_back_more_and_never_less() -> None:
    bench = talking(5)
    bench.give(Interrupted("r1", ""))
    bench.give(Interrupted("r1", "", cut_sample=3 * 1920))
    assert rewinds_of(bench.give(Interrupted("r1", "", cut_sample=4 * 1920))) == []
    assert rewinds_of(bench.give(Interrupted("r1", "", cut_sample=0))) == [0]


def test_what_was_heard_to_its_end_is_not_taken_back() -> None:
    bench = talking(5)
    bench.give(Interrupted("r1", ""))
    assert rewinds_of(bench.give(Interrupted("r1", "", cut_sample=5 * 1920))) == []


def test_an_answer_that_ended_by_itself_may_be_cut_yet() -> None:
    bench = talking(5)
    bench.quiet(5)
    assert rewinds_of(bench.give(Interrupted("r1", "", cut_sample=0))) == [0]


def test_an_answer_is_not_taken_back_once_another_has_begun() -> None:
    bench = talking(5)
    bench.quiet(5)
    bench.loud(1)
    assert rewinds_of(bench.give(Interrupted("r1", "", cut_sample=0))) == []
    assert heard_of(bench.loud(1)) == [("r2", 11)]


def test_rewinding_can_be_switched_off() -> None:
    bench = Bench(LockstepSettings(rewind=False))
    bench.configure()
    bench.give(HEARD)
    bench.loud(5)
    bench.give(Interrupted("r1", ""))
    assert bench.give(Interrupted("r1", "", cut_sample=0)) == []


# Nobody there


def test_without_an_audience_the_model_stands_still() -> None:
    bench = talking()
    assert bench.give(AudienceChanged(False)) == [AppendToRequest(STREAM, LockstepFreeze(True))]
    assert bench.give(HEARD) == []
    assert bench.give(AudienceChanged(True)) == [AppendToRequest(STREAM, LockstepFreeze(False))]
    assert heard_of(bench.loud(1)) == [("r1", 3)]


# What goes wrong


def test_a_lost_stream_goes_on_from_its_log() -> None:
    bench = talking(2)
    effects = bench.give(RequestFailed(STREAM, "replica_lost"))
    assert effects[0] == EndResponse("r1", ResponseOutcome.FAILED, "replica_lost")
    rows = [(3, 0, 1, 2, 0), (3, 1, 1, 2, 1)]
    packed = b"".join(n.to_bytes(2, "little") for row in rows for n in row)
    assert start_of(effects).log == packed


def test_what_was_taken_back_is_not_in_the_log() -> None:
    bench = talking(2)
    bench.give(Interrupted("r1", ""))
    bench.give(Interrupted("r1", "", cut_sample=1920))
    log = start_of(bench.give(RequestEnded(STREAM))).log
    numbers = [int.from_bytes(log[i : i + 2], "little") for i in range(0, len(log), 2)]
    assert numbers == [3, 0, 1, 2, 0, NOT_SAID, NOT_SAID, NOT_SAID, 2, 1]


def test_a_stream_that_never_ran_is_not_tried_again_until_somebody_asks() -> None:
    bench = Bench()
    bench.configure()
    bench.give(HEARD)
    effects = bench.give(RequestFailed(STREAM, "server_full"))
    assert effects[-1] == EndResponse("r1", ResponseOutcome.FAILED, "server_full")
    assert bench.give(HEARD) == []
    start_of(bench.request())


def test_an_answer_asked_for_fails_with_its_stream() -> None:
    bench = Bench()
    bench.request()
    effects = bench.give(RequestFailed(STREAM, "server_full"))
    assert effects == [EndResponse("r1", ResponseOutcome.FAILED, "server_full")]


def test_a_stream_is_not_begun_anew_for_ever() -> None:
    bench = talking(1)
    for _ in range(3):
        start_of(bench.give(RequestFailed(STREAM, "replica_lost")))
        bench.loud(1)
    effects = bench.give(RequestFailed(STREAM, "replica_lost"))
    assert not [effect for effect in effects if isinstance(effect, StartRequest)]


def test_a_stuck_model_begins_anew_and_knows_nothing_of_it() -> None:
    bench = Bench(LockstepSettings(stuck_ms=400))
    bench.configure()
    bench.give(HEARD)
    frame = LockstepFrame(0, loud(0), codes=(1, 2), heard=(3, 4))
    for number in range(4):
        bench.give(RequestOutput(STREAM, replace_number(frame, number)))
    effects = bench.give(RequestOutput(STREAM, replace_number(frame, 4)))
    assert effects[:2] == [StopRequest(STREAM), EndResponse("r1", ResponseOutcome.FAILED, STUCK)]
    assert start_of(effects).log == b""


def test_a_model_that_stays_stuck_is_left_alone() -> None:
    bench = Bench(LockstepSettings(stuck_ms=80, max_restarts=0))
    bench.configure()
    bench.give(HEARD)
    effects = bench.give(RequestOutput(STREAM, LockstepFrame(0, loud(0), codes=(1, 2))))
    assert not [effect for effect in effects if isinstance(effect, StartRequest)]
    assert bench.give(HEARD) == []


def test_a_stream_begun_anew_without_an_audience_stands_still() -> None:
    bench = talking(1)
    bench.give(AudienceChanged(False))
    effects = bench.give(RequestFailed(STREAM, "replica_lost"))
    assert effects[-1] == AppendToRequest(STREAM, LockstepFreeze(True))


@pytest.mark.parametrize("item", [Tick(1), RequestOutput("other", LockstepStart())])
def test_what_does_not_concern_it_changes_nothing(item: Tick | RequestOutput) -> None:
    bench = talking()
    assert list(bench.give(item)) == []


def replace_number(frame: LockstepFrame, number: int) -> LockstepFrame:
    return LockstepFrame(
        number, frame.pcm, frame.text, frame.token, frame.codes, frame.heard, frame.rewinds
    )


# What became of its frames


def test_news_of_the_stream_are_handed_on_and_a_shorter_memory_is_told_when_it_matters() -> None:
    bench = talking()
    told = []
    # The window has 50 frames.
    for seen in (0, 40, 38, 30, 30, 0, 0):
        counts = FrameCounts(frames=seen)
        (noted,) = bench.give(RequestOutput(STREAM, LockstepNews(counts, seen)))
        assert isinstance(noted, StreamNoted)
        assert noted.counts == counts
        told.append(noted.remembers_ms)
    assert told == [None, 3200, None, 2400, None, 4000, None]


def test_each_session_holds_a_place_of_its_pipeline() -> None:
    assert Bench().plugin.capabilities().resident == "model"


# How daring it is


def tastes_of(effects: Sequence[PluginEffect]) -> list[float | None]:
    appended = [each.payload for each in effects if isinstance(each, AppendToRequest)]
    return [each.temperature for each in appended if isinstance(each, LockstepTaste)]


def test_it_begins_as_daring_as_the_client_wants() -> None:
    bench = Bench()
    bench.configure(temperature=0.3)
    assert start_of(bench.give(HEARD)).temperature == 0.3


def test_a_change_counts_from_the_next_frame_on_and_begins_nothing_anew() -> None:
    bench = Bench()
    bench.configure()
    bench.give(HEARD)
    effects = bench.configure(temperature=0.0)
    assert tastes_of(effects) == [0.0]
    assert not any(isinstance(each, StartRequest) for each in effects)
    assert bench.configure(temperature=0.0) == []


def test_what_is_asked_for_one_answer_ends_with_it() -> None:
    bench = Bench()
    bench.configure(temperature=0.5)
    bench.give(HEARD)
    asked = ResponseRequested("r1", (), PluginConfig(temperature=0.1))
    assert tastes_of(bench.give(asked)) == [0.1]
    assert tastes_of(bench.give(Interrupted("r1", ""))) == [0.5]


def test_a_stream_that_is_begun_by_an_answer_takes_what_that_wants() -> None:
    bench = Bench()
    bench.configure()
    effects = bench.give(ResponseRequested("r1", (), PluginConfig(temperature=0.1)))
    assert start_of(effects).temperature is None
    assert tastes_of(effects) == [0.1]


def test_how_many_it_draws_from_counts_from_the_next_frame_on_and_its_seed_from_the_start() -> None:
    bench = Bench(LockstepSettings(seed=7))
    bench.configure(draws=Draws(top_k=40, seed=5))
    started = start_of(bench.give(HEARD))
    assert (started.top_k, started.seed) == (40, 5)
    effects = bench.configure(draws=Draws(top_k=3, seed=5))
    assert [each.payload for each in effects if isinstance(each, AppendToRequest)] == [
        LockstepTaste(None, 3)
    ]
    # Before it has spoken it may begin anew, as the server would have it.
    assert start_of(bench.configure(draws=Draws(top_k=3))).seed == 7
    asked = ResponseRequested("r1", (), PluginConfig(temperature=0.1))
    (told,) = [each.payload for each in bench.give(asked) if isinstance(each, AppendToRequest)]
    assert told == LockstepTaste(0.1, 3)
