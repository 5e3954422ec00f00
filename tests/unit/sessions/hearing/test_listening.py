"""From the microphone to turns and transcripts, without knowing what becomes of them."""

from __future__ import annotations

import pytest

from duologue.core.errors import LimitExceeded
from duologue.duplex_plugins.contract import TranscriptKind
from duologue.engines.payloads import (
    DecodeSpeech,
    EndOfTurn,
    Transcript,
    VoiceActivity,
)
from duologue.protocol.session_config import (
    SemanticVad,
    ServerVad,
    Transcription,
)
from duologue.sessions.effects import AppendInput, CancelRequest, ReportFailure, SubmitRequest
from duologue.sessions.hearing.floor import FloorState, SpeechBegan
from duologue.sessions.hearing.listening import (
    DETECTOR_LAG_MS,
    KEPT_SILENCE_MS,
    REOPEN_AFTER_MS,
    SEMANTIC_POLICIES,
)
from duologue.sessions.requests import Asker
from duologue.sessions.settings import ListeningSettings
from tests.unit.sessions.listening_bench import MS, Bench, config

# Detection


def test_without_detection_audio_waits_for_a_commit() -> None:
    bench = Bench()
    bench.hear(5000)
    assert bench.effects() == []
    assert bench.listening.audio.held_ms == 5000
    assert not bench.listening.detecting


def test_a_detector_hears_everything_in_order() -> None:
    bench = Bench(ServerVad())
    for _ in range(3):
        bench.hear(100)
    assert bench.fed("vad") == [(0, 100), (100, 200), (200, 300)]


def test_half_a_sample_is_not_worth_a_message() -> None:
    bench = Bench(ServerVad())
    assert bench.listening.append(b"\x01") is None
    assert bench.effects() == []


def test_while_nobody_speaks_only_the_padding_and_a_reserve_are_kept() -> None:
    bench = Bench(ServerVad(prefix_padding_ms=300))
    for _ in range(100):
        bench.hear(100)
        bench.judge_silence()
    assert bench.listening.audio.held_ms == 300 + KEPT_SILENCE_MS + 100


def test_what_the_detector_has_not_judged_yet_is_kept() -> None:
    bench = Bench(ServerVad())
    for _ in range(90):
        bench.hear(100)
    assert bench.listening.audio.start_sample == 0


def test_a_turn_that_may_have_begun_is_kept_whole() -> None:
    bench = Bench(ServerVad())
    bench.hear(1000)
    bench.begin(700, confirm=False)
    for _ in range(30):
        bench.hear(100)
    assert bench.listening.audio.read(700 * MS).samples == 3300 * MS


def test_without_a_detector_nothing_is_forgotten_until_the_buffer_is_full() -> None:
    bench = Bench(ServerVad(), settings=ListeningSettings(vad=None))
    for _ in range(99):
        bench.hear(100)
    assert bench.effects() == []
    with pytest.raises(LimitExceeded, match="Commit or clear it first"):
        bench.hear(200)


def test_a_detector_that_failed_is_tried_again_after_a_while() -> None:
    bench = Bench(ServerVad())
    bench.hear(100)
    bench.requests.cancel(Asker.DETECTOR, "")
    bench.listening.detector_failed("")
    bench.effects()
    bench.hear(REOPEN_AFTER_MS)
    assert bench.effects() == []
    bench.hear(100)
    assert bench.fed("vad") == [(2100, 2200)]


def test_a_detector_that_says_nothing_for_too_long_is_given_up() -> None:
    bench = Bench(ServerVad(), settings=ListeningSettings(detector_timeout_s=10))
    bench.hear(DETECTOR_LAG_MS)
    bench.listening.watch_detector(0.0)
    bench.listening.watch_detector(60.0)
    bench.hear(100)
    bench.listening.watch_detector(60.0)
    bench.effects()
    bench.listening.watch_detector(69.9)
    assert bench.effects() == []
    bench.listening.watch_detector(70.0)
    assert [type(effect) for effect in bench.effects()] == [CancelRequest, ReportFailure]
    bench.hear(REOPEN_AFTER_MS)
    assert bench.effects() == []
    bench.hear(100)
    assert isinstance(bench.effects()[0], SubmitRequest)


def test_a_detector_that_says_something_is_well() -> None:
    bench = Bench(ServerVad(), settings=ListeningSettings(detector_timeout_s=10))
    bench.hear(4000)
    bench.listening.watch_detector(0.0)
    bench.listening.on_activity(VoiceActivity(0.0, 512))
    bench.effects()
    bench.listening.watch_detector(20.0)
    assert bench.effects() == []


def test_switching_detection_off_lets_the_detector_go_and_the_turn_be() -> None:
    bench = Bench(ServerVad())
    bench.hear(1000)
    bench.begin(0)
    bench.listening.configure(config(None))
    assert any(isinstance(effect, CancelRequest) for effect in bench.effects())
    assert bench.listening.turn is None
    assert bench.listening.audio.held_ms == 1000
    bench.hear(100)
    assert bench.effects() == []


def test_a_change_of_something_else_leaves_a_turn_alone() -> None:
    bench = Bench()
    bench.hear(1000)
    bench.begin(0)
    bench.listening.configure(config(None))
    assert bench.listening.turn is not None


def test_server_vad_means_what_the_client_said() -> None:
    bench = Bench(ServerVad(threshold=0.1, prefix_padding_ms=100, silence_duration_ms=50))
    bench.hear(1000)
    listening = bench.listening
    assert listening.on_activity(VoiceActivity(0.09, 512)) == ()
    for window in range(2, 22):
        began = listening.on_activity(VoiceActivity(0.2, window * 512))
        if began:
            break
    assert began == (SpeechBegan(0),)
    assert listening.speech_ms == 64
    listening.on_activity(VoiceActivity(0.04, 5 * 512))
    assert listening.floor.state is FloorState.PAUSING
    listening.on_activity(VoiceActivity(0.04, 6 * 512))
    assert listening.floor.state is FloorState.SILENT


@pytest.mark.parametrize("eagerness", list(SEMANTIC_POLICIES))
def test_semantic_vad_asks_the_end_of_turn_model(eagerness: str) -> None:
    bench = Bench(SemanticVad(eagerness=eagerness))  # type: ignore[arg-type]
    bench.hear(2000)
    listening = bench.listening
    for window in range(1, 4):
        listening.on_activity(VoiceActivity(0.9, window * 512))
    events = [e for w in range(4, 13) for e in listening.on_activity(VoiceActivity(0.0, w * 512))]
    assert len(events) == 2
    threshold, silence_ms = SEMANTIC_POLICIES[eagerness]
    assert listening.on_end_of_turn(EndOfTurn(threshold - 0.01, 12 * 512)) == ()
    assert len(listening.on_end_of_turn(EndOfTurn(threshold, 12 * 512))) == 1
    assert silence_ms >= 700


# The end-of-turn model


def test_the_end_of_turn_model_hears_the_turn_but_not_more_than_it_looks_at() -> None:
    bench = Bench(SemanticVad())
    bench.hear(1000)
    bench.begin(1000)
    bench.hear(8900)
    bench.effects()
    bench.listening.ask_end_of_turn(3000 * MS)
    assert bench.fed("end_of_turn") == [(1000, 3000)]
    bench.listening.ask_end_of_turn(9500 * MS)
    assert bench.fed("end_of_turn") == [(1500, 9500)]


def test_without_a_turn_or_a_model_nobody_is_asked() -> None:
    bench = Bench(SemanticVad())
    bench.listening.ask_end_of_turn(100)
    without = Bench(ServerVad(), settings=ListeningSettings(end_of_turn=None))
    without.hear(1000)
    without.begin(0)
    without.effects()
    without.listening.ask_end_of_turn(100)
    assert bench.effects() == without.effects() == []


# Transcription


def test_nobody_transcribes_unasked() -> None:
    bench = Bench()
    bench.hear(1000)
    bench.begin(0)
    assert bench.effects() == []
    assert not bench.listening.commit(1000 * MS).transcribing


def test_a_client_may_ask_for_transcripts() -> None:
    bench = Bench()
    bench.listening.configure(config(None, Transcription()))
    bench.hear(1000)
    utterance = bench.listening.commit_all()
    assert utterance.transcribing
    assert bench.fed("asr") == [(0, 1000)]


def test_a_recogniser_hears_the_turn_from_its_beginning_once_it_is_one() -> None:
    bench = Bench(ServerVad(), transcribe=True)
    bench.hear(1000)
    bench.begin(400, confirm=False)
    bench.hear(100)
    bench.listening.pause(900 * MS)
    bench.listening.resume()
    assert bench.fed("asr") == []
    turn = bench.listening.turn
    assert turn is not None
    bench.listening.confirm(turn)
    bench.hear(100)
    assert bench.fed("asr") == [(400, 1100), (1100, 1200)]


def test_a_right_speculation_comes_with_the_commit() -> None:
    bench = Bench(transcribe=True)
    bench.hear(1000)
    bench.begin(0)
    bench.listening.pause(800 * MS)
    item_id = bench.listening.turn.item_id  # type: ignore[union-attr]
    ready = bench.listening.on_transcript(item_id, Transcript("hello", "final", 800 * MS))
    assert ready is not None
    assert ready.kind is TranscriptKind.SPECULATIVE
    utterance = bench.listening.commit(800 * MS)
    assert utterance.transcript is not None
    assert utterance.transcript.text == "hello"


def test_a_pause_that_was_none_is_transcribed_anew() -> None:
    bench = Bench(transcribe=True)
    bench.hear(1000)
    bench.begin(0)
    bench.listening.pause(800 * MS)
    item_id = bench.listening.turn.item_id  # type: ignore[union-attr]
    bench.listening.on_transcript(item_id, Transcript("hello", "final", 800 * MS))
    bench.listening.resume()
    bench.effects()
    assert bench.listening.commit(900 * MS).transcript is None
    asked = [e.payload for e in bench.effects() if isinstance(e, AppendInput)]
    assert asked == [DecodeSpeech("final", 900 * MS)]


def test_a_recogniser_that_is_given_up_is_cancelled() -> None:
    bench = Bench(transcribe=True)
    bench.hear(1000)
    utterance = bench.listening.commit_all()
    bench.effects()
    bench.listening.give_up_transcript(utterance.item_id)
    assert [type(effect) for effect in bench.effects()] == [CancelRequest]


def test_a_lost_recogniser_is_replaced_once_and_hears_the_turn_again() -> None:
    bench = Bench(transcribe=True)
    bench.hear(1000)
    bench.begin(200)
    item_id = bench.listening.turn.item_id  # type: ignore[union-attr]
    bench.effects()
    bench.requests.cancel(Asker.TRANSCRIBER, item_id)
    assert not bench.listening.recogniser_ended(item_id, "")
    assert bench.fed("asr") == [(200, 1000)]
    bench.requests.cancel(Asker.TRANSCRIBER, item_id)
    bench.effects()
    assert not bench.listening.recogniser_ended(item_id, "")
    assert bench.effects() == [ReportFailure("transcriber", "stage_failed")]
    bench.listening.commit(900 * MS)
    assert bench.fed("asr") == [(200, 900)]


def test_a_recogniser_that_is_lost_after_the_commit_leaves_the_turn_without_text() -> None:
    bench = Bench(transcribe=True)
    bench.hear(1000)
    utterance = bench.listening.commit_all()
    assert bench.listening.recogniser_ended(utterance.item_id, "")
    assert not bench.listening.recogniser_ended("unknown", "")


def decodes(bench: Bench) -> list[DecodeSpeech]:
    asked = [effect.payload for effect in bench.effects() if isinstance(effect, AppendInput)]
    return [payload for payload in asked if isinstance(payload, DecodeSpeech)]


@pytest.mark.parametrize("reader", ["nobody", "client", "plugin"])
def test_partials_are_made_where_somebody_reads_them(reader: str) -> None:
    bench = Bench(SemanticVad(), transcribe=True, partials=reader == "plugin")
    if reader == "client":
        bench.listening.configure(config(SemanticVad(), Transcription()))
    bench.hear(1000)
    bench.begin(200)
    bench.hear(600)
    assert decodes(bench) == ([] if reader == "nobody" else [DecodeSpeech("partial", 1600 * MS)])


def test_no_partial_is_asked_for_in_silence() -> None:
    bench = Bench(SemanticVad(), transcribe=True, partials=True)
    bench.hear(1000)
    for window in range(1, 5):
        bench.listening.on_activity(VoiceActivity(0.9, window * 512))
    bench.begin(0)
    bench.listening.on_activity(VoiceActivity(0.1, 5 * 512))
    bench.effects()
    bench.hear(600)
    assert decodes(bench) == []
    bench.listening.on_activity(VoiceActivity(0.9, 6 * 512))
    bench.hear(20)
    assert decodes(bench) == [DecodeSpeech("partial", 1620 * MS)]
