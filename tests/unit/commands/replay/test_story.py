"""A recorded call as facts."""

from __future__ import annotations

import pytest

from duologue.commands.replay.story import Story, story_of
from duologue.engines.payloads import AudioChunk
from duologue.protocol.commands import CreateResponse, DeleteItem
from duologue.protocol.events import ItemTruncated
from duologue.protocol.response_events import AudioDelta
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE
from tests.fakes.taped_call import (
    CUT_MS,
    RATE_HZ,
    SECRETS,
    MemoryTape,
    interrupted_call,
    plugin,
)


def told(*, content: bool) -> tuple[Story, FakeCall]:
    memory = MemoryTape(content=content)
    call = interrupted_call(memory)
    return story_of(memory.recording()), call


@pytest.mark.parametrize("content", [True, False])
def test_an_answer_was_heard_exactly_up_to_where_its_client_cut_it(content: bool) -> None:
    story, call = told(content=content)
    answer = story.answers[0]
    sent = sum(len(delta.delta) for delta in call.client.of(AudioDelta)) / 2 / RATE_HZ
    assert answer.sent_s == pytest.approx(sent)
    assert answer.heard_s == CUT_MS / 1000
    assert answer.heard_until == pytest.approx(answer.sounds[0].at_s + CUT_MS / 1000)
    assert answer.made_s == pytest.approx(6.0)
    assert (answer.status, answer.reason) == ("cancelled", "turn_detected")


def test_a_cut_of_the_client_replaces_ours_and_only_shrinks() -> None:
    memory = MemoryTape(content=False)
    call = interrupted_call(memory)
    item_id = call.client.of(AudioDelta)[0].item_id
    assert CUT_MS in [event.audio_end_ms for event in call.client.of(ItemTruncated)]
    for later in ((CUT_MS + 500,), (CUT_MS + 500, 200), (200, 0, 10**9)):
        memory = MemoryTape(content=False)
        interrupted_call(memory, *later)
        answer = story_of(memory.recording()).answers[0]
        assert answer.item_id == item_id
        assert answer.heard_s == min(CUT_MS, *later) / 1000


@pytest.mark.parametrize("content", [True, False])
def test_turns_lie_where_their_sound_came_in(content: bool) -> None:
    story, _ = told(content=content)
    first, second = story.turns
    assert first.speech_from <= 10 * 0.032 <= first.started_at
    assert first.speech_until == pytest.approx(50 * 0.032, abs=0.05)
    assert story.answers[0].asked_by is first
    assert story.interruptions() == [(second, story.answers[0])]


def test_words_and_loudness_are_known_where_the_recording_has_them() -> None:
    story, _ = told(content=True)
    assert story.answers[0].transcript == SECRETS[1]
    levels = story.answers[0].sounds[0].levels
    assert levels is not None
    assert levels.max() == pytest.approx(10_000 / 32768, rel=0.05)
    assert told(content=False)[0].answers[0].sounds[0].levels is None


def test_what_waits_in_the_output_buffer_is_followed() -> None:
    story, _ = told(content=False)
    assert max(ms for _, ms in story.waiting) > 1000
    assert story.waiting[-1][1] == 0
    assert [at_s for at_s, _ in story.waiting] == sorted(at_s for at_s, _ in story.waiting)


def test_what_was_sent_ahead_falls_with_playback_and_at_once_with_a_cut() -> None:
    story, _ = told(content=False)
    at = [at_s for at_s, _ in story.ahead]
    assert at == sorted(at)
    assert max(seconds for _, seconds in story.ahead) == pytest.approx(3.0, abs=0.3)
    cut_at = story.answers[0].cut_at
    assert cut_at is not None
    assert [seconds for at_s, seconds in story.ahead if at_s >= cut_at][-1] == 0.0


def test_answers_play_one_behind_the_other() -> None:
    memory = MemoryTape(content=False)
    engine = FakeEngine(pipelines=("vad", "end_of_turn", "asr", STAGE))
    call = FakeCall(plugin(), engine, tape=memory.tape)
    for _ in range(2):
        call.send(CreateResponse())
        stream = engine.of(STAGE)[-1].request.id
        engine.output(stream, AudioChunk(bytes(2 * RATE_HZ), RATE_HZ))
        engine.complete(stream)
        call.clock.advance(0.5)
    call.session.close("client_gone")
    one, two = story_of(memory.recording()).answers
    assert two.sounds[0].at_s == pytest.approx(one.sounds[0].at_s + 1.0)
    assert one.status == "completed"


def test_what_went_wrong_is_told() -> None:
    memory = MemoryTape(content=False)
    engine = FakeEngine(pipelines=("vad", "end_of_turn", "asr", STAGE))
    call = FakeCall(plugin(), engine, tape=memory.tape)
    call.send(DeleteItem(item_id="item_none"))
    call.send(CreateResponse())
    engine.fail(engine.of(STAGE)[-1].request.id, "replica_lost")
    call.session.close("client_gone")
    what = [fault.what for fault in story_of(memory.recording()).faults]
    assert what[0].startswith("the client was told item_")
    assert any("failed: replica_lost" in text for text in what[1:])
