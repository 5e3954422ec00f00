"""What becomes of buffered audio: commits by hand and by detectors, and what is forgotten."""

from __future__ import annotations

import pytest

from duologue.core.errors import ProtocolError
from duologue.engines.payloads import (
    VoiceActivity,
)
from duologue.protocol.audio_formats import PcmuFormat
from duologue.protocol.session_config import (
    ServerVad,
)
from duologue.sessions.effects import CancelRequest
from duologue.sessions.hearing.floor import FloorState
from duologue.sessions.settings import ListeningSettings
from tests.unit.sessions.listening_bench import MS, Bench

# Commits


def test_a_commit_by_hand_takes_everything() -> None:
    bench = Bench()
    bench.hear(600)
    utterance = bench.listening.commit_all()
    assert (utterance.start_sample, utterance.end_sample) == (0, 600 * MS)
    assert bench.listening.audio.held_ms == 0


@pytest.mark.parametrize("ms", [0, 99])
def test_too_little_audio_is_no_utterance_and_stays(ms: int) -> None:
    bench = Bench()
    bench.hear(ms)
    with pytest.raises(ProtocolError, match=f"holds {ms} ms of audio, a commit needs") as refusal:
        bench.listening.commit_all()
    assert refusal.value.code == "input_audio_buffer_commit_empty"
    bench.hear(100 - ms)
    assert bench.listening.commit_all().end_sample == 100 * MS


def test_what_the_resampler_keeps_back_counts_as_audio() -> None:
    bench = Bench()
    bench.listening.audio.set_format(PcmuFormat())
    bench.listening.append(b"\xff" * 800)
    assert bench.listening.audio.held_ms < 100
    bench.listening.commit_all()


def test_a_commit_by_hand_in_mid_turn_ends_the_turn_that_the_detector_began() -> None:
    bench = Bench(ServerVad())
    bench.hear(1000)
    bench.begin(400)
    item_id = bench.listening.turn.item_id  # type: ignore[union-attr]
    utterance = bench.listening.commit_all()
    assert (utterance.item_id, utterance.start_sample) == (item_id, 400 * MS)
    assert bench.listening.floor.state is FloorState.SILENT


def test_the_silence_that_ended_a_turn_is_no_turn() -> None:
    bench = Bench(ServerVad())
    bench.hear(2000)
    bench.begin(0)
    bench.listening.commit(1500 * MS)
    assert bench.listening.audio.held_ms == 500
    with pytest.raises(ProtocolError, match="holds 0 ms"):
        bench.listening.commit_all()
    bench.hear(150)
    utterance = bench.listening.commit_all()
    assert (utterance.start_sample, utterance.end_sample) == (2000 * MS, 2150 * MS)


def test_half_a_sample_ends_with_what_the_client_commits() -> None:
    bench = Bench()
    bench.hear(200)
    bench.listening.append(b"\x07")
    bench.listening.commit_all()
    bench.hear(100)
    assert bench.listening.audio.dropped_bytes == 1
    assert set(bench.listening.audio.read(0).pcm) == {0, 1}


def test_half_a_sample_survives_a_turn_that_the_detector_ends() -> None:
    bench = Bench(ServerVad())
    bench.hear(200)
    bench.begin(0)
    bench.listening.append(b"\x07")
    bench.listening.commit(100 * MS)
    bench.listening.append(b"\x00")
    assert bench.listening.audio.read(200 * MS).pcm == b"\x07\x00"


def test_a_turn_begins_no_earlier_than_what_is_still_there() -> None:
    bench = Bench()
    bench.hear(500)
    bench.listening.audio.drop_before(300 * MS)
    assert bench.listening.begin(100 * MS).start_sample == 300 * MS


def test_a_model_that_decides_by_itself_has_nothing_to_commit() -> None:
    bench = Bench(retain=False)
    bench.hear(1000)
    with pytest.raises(ProtocolError, match="holds 0 ms"):
        bench.listening.commit_all()


# Forgetting


def test_clearing_forgets_audio_and_turn_and_recogniser() -> None:
    bench = Bench(ServerVad(), transcribe=True)
    bench.hear(1000)
    bench.begin(0)
    bench.effects()
    bench.listening.append(b"\x07")
    bench.listening.clear()
    assert bench.listening.turn is None
    assert bench.listening.audio.held_bytes == 0
    assert any(isinstance(effect, CancelRequest) for effect in bench.effects())
    bench.hear(100)
    assert bench.listening.audio.next_sample == 1100 * MS


def test_a_detector_that_lags_behind_cannot_bring_back_what_was_cleared() -> None:
    bench = Bench(ServerVad())
    bench.hear(1000)
    bench.listening.clear()
    heard = [bench.listening.on_activity(VoiceActivity(0.9, w * 512)) for w in range(20, 31)]
    assert heard == [()] * 11


def test_a_turn_that_was_none_is_forgotten_and_its_audio_stays() -> None:
    bench = Bench(ServerVad())
    bench.hear(1000)
    bench.begin(400, confirm=False)
    bench.listening.abandon()
    assert bench.listening.turn is None
    assert bench.listening.audio.held_ms == 1000


def test_where_there_is_no_turn_there_is_nothing_to_pause_or_resume() -> None:
    bench = Bench(transcribe=True)
    bench.listening.pause(100)
    bench.listening.resume()
    bench.listening.abandon()
    assert bench.effects() == []


LOUD = b"\x00\x10" * (200 * MS)


def test_what_nobody_has_judged_may_be_speech_if_it_is_loud_and_long_enough() -> None:
    bench = Bench(ServerVad())
    assert not bench.listening.holds_speech()
    bench.hear(200)
    assert not bench.listening.holds_speech()
    bench.listening.append(LOUD[: 2 * 50 * MS])
    assert bench.listening.holds_speech()
    bench.judge_silence()
    bench.listening.append(LOUD[: 2 * 50 * MS])
    assert not bench.listening.holds_speech()
    bench.listening.append(LOUD)
    assert bench.listening.holds_speech()


def test_a_turn_that_goes_on_is_speech_and_one_that_was_taken_is_not() -> None:
    bench = Bench(ServerVad())
    bench.listening.append(LOUD * 2)
    bench.judge_silence()
    bench.begin(0)
    assert bench.listening.holds_speech()
    bench.listening.commit(400 * MS)
    assert not bench.listening.holds_speech()


def test_without_a_detector_everything_is_unjudged() -> None:
    bench = Bench(ServerVad(), settings=ListeningSettings(vad=None))
    bench.listening.append(LOUD)
    assert bench.listening.holds_speech()
