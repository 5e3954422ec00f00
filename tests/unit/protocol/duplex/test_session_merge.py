from __future__ import annotations

from typing import Any

import pytest

from duologue.core.errors import ProtocolError
from duologue.protocol.audio_formats import PcmFormat
from duologue.protocol.config_checks import Supported
from duologue.protocol.duplex.session_merge import duplex_default, merge_duplex, server_choice
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.session_config import SemanticVad, ServerVad, SessionConfig
from duologue.protocol.session_patch import AudioInputPatch, AudioPatch, TurnDetectionPatch

BOTH = frozenset({"server_vad", "semantic_vad"})
START = duplex_default(SessionConfig(turn_detection=SemanticVad()))


def merged(config: SessionConfig = START, detectors: Any = BOTH, **fields: Any) -> SessionConfig:
    return merge_duplex(config, DuplexPatch(**fields), Supported(turn_detection=detectors))


def detection(value: TurnDetectionPatch | None) -> AudioPatch:
    return AudioPatch(input=AudioInputPatch(turn_detection=value))


def test_a_duplex_client_speaks_at_16_khz_unless_it_says_otherwise() -> None:
    assert START.input_format == PcmFormat(rate=16000)
    assert START.output_format == PcmFormat(rate=24000)


def test_a_patch_that_names_nothing_changes_nothing() -> None:
    assert merged() == START


def test_the_server_takes_the_best_that_it_has() -> None:
    assert isinstance(server_choice(BOTH), SemanticVad)
    assert isinstance(server_choice(frozenset({"server_vad"})), ServerVad)
    assert server_choice(frozenset()) is None


def test_null_gives_turns_back_to_the_server_and_an_update_of_other_things_does_not() -> None:
    chosen = merged(audio=detection(TurnDetectionPatch(type="server_vad", threshold=0.7)))
    assert chosen.duplex is not None
    assert not chosen.duplex.turns_left_to_server
    assert merged(chosen, instructions="x").turn_detection == ServerVad(threshold=0.7)
    back = merged(chosen, audio=detection(None))
    assert back.turn_detection == SemanticVad()
    assert back.duplex is not None
    assert back.duplex.turns_left_to_server
    assert merged(back, audio=detection(None)) == back


@pytest.mark.parametrize(
    ("policy", "interrupt_response", "interrupts"),
    [
        (None, True, True),
        (None, False, False),
        ("listen_only", True, False),
        ("barge_in_on_speech", False, True),
    ],
)
def test_the_overlap_policy_counts_more_than_the_detection(
    policy: Any, interrupt_response: bool, interrupts: bool
) -> None:
    patch = TurnDetectionPatch(type="server_vad", interrupt_response=interrupt_response)
    assert merged(audio=detection(patch), overlap_policy=policy).interrupts is interrupts


@pytest.mark.parametrize("auto", [True, False])
@pytest.mark.parametrize("create", [True, False])
def test_turns_are_answered_where_nobody_objects(auto: bool, create: bool) -> None:
    patch = TurnDetectionPatch(type="server_vad", create_response=create)
    config = merged(audio=detection(patch), auto_response=auto)
    assert config.answers_turns is (auto and create)


def test_settings_stay_until_they_are_changed_or_cleared() -> None:
    given = {
        "overlap_policy": "listen_only",
        "overlap_barge_in_ms": 700,
        "playback_commit_policy": "ack_only",
        "auto_response": False,
        "idle_timeout_s": 60.0,
        "top_k": 40,
        "seed": 7,
    }
    config = merged(**given)
    assert merged(config).duplex == config.duplex
    for name, value in given.items():
        assert getattr(config.duplex, name) == value
    assert merged(config, **dict.fromkeys(given)).duplex == START.duplex


@pytest.mark.parametrize(
    ("fields", "detectors", "param"),
    [
        ({"overlap_policy": "barge_in_on_speech"}, frozenset(), "session.overlap_policy"),
        ({"type": "transcription"}, BOTH, "session.type"),
        ({"overlap_barge_in_ms": -1}, BOTH, "session.overlap_barge_in_ms"),
        ({"overlap_barge_in_ms": 10_001}, BOTH, "session.overlap_barge_in_ms"),
        ({"idle_timeout_s": 0.5}, BOTH, "session.idle_timeout_s"),
        ({"idle_timeout_s": float("nan")}, BOTH, "session.idle_timeout_s"),
        ({"top_k": 0}, BOTH, "session.top_k"),
        ({"top_k": 2049}, BOTH, "session.top_k"),
        ({"seed": 0}, BOTH, "session.seed"),
        ({"seed": 2**53}, BOTH, "session.seed"),
        ({"ref_audio": "data:audio/wav;base64,AAAA"}, BOTH, "session.ref_audio"),
    ],
)
def test_what_cannot_be_is_refused(fields: Any, detectors: Any, param: str) -> None:
    config = START if detectors else duplex_default(SessionConfig(turn_detection=None))
    with pytest.raises(ProtocolError) as caught:
        merged(config, detectors, **fields)
    assert caught.value.param == param


@pytest.mark.parametrize("name", ["top_k", "seed"])
def test_how_it_draws_is_said_only_to_a_model_that_obeys(name: str) -> None:
    fixed = Supported(turn_detection=BOTH, sampling=False)
    assert merge_duplex(START, DuplexPatch(**{name: None}), fixed) == START
    with pytest.raises(ProtocolError) as caught:
        merge_duplex(START, DuplexPatch(**{name: 3}), fixed)
    assert (caught.value.param, caught.value.code) == (f"session.{name}", "unsupported")


def test_a_model_that_has_spoken_keeps_its_seed_and_may_draw_from_fewer() -> None:
    spoken = Supported(turn_detection=BOTH, persona_stays=True)
    config = merged(seed=7)
    again = merge_duplex(config, DuplexPatch(seed=7, top_k=3), spoken)
    assert again.duplex is not None
    assert (again.duplex.seed, again.duplex.top_k) == (7, 3)
    for other in (8, None):
        with pytest.raises(ProtocolError) as caught:
            merge_duplex(config, DuplexPatch(seed=other), spoken)
        assert (caught.value.param, caught.value.code) == ("session.seed", "cannot_update_seed")
