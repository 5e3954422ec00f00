"""Audio that says where it belongs, in the duplex dialect."""

from __future__ import annotations

from typing import Any

from duologue.protocol.append_audio import AppendPlacedAudio
from duologue.protocol.audio_formats import FormatPatch, PcmFormat, PcmuFormat
from duologue.protocol.commands import UpdateSession
from duologue.protocol.duplex.commands import (
    Heartbeat,
)
from duologue.protocol.duplex.events import (
    HeartbeatAcknowledged,
    InputAccepted,
)
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.events import (
    ErrorEvent,
)
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioPatch,
    SessionPatch,
)
from tests.unit.sessions.duplex_call import call, shown


def placed(start: int | None, samples: int = 1600, **fields: Any) -> AppendPlacedAudio:
    return AppendPlacedAudio(audio=b"\x00\x10" * samples, start_sample=start, **fields)


def test_what_was_sent_again_is_heard_once() -> None:
    made = call()
    made.send(placed(0), placed(800), placed(2400))
    assert made.machine.listening.audio.next_sample == 4000
    made.send(Heartbeat())
    assert made.client.last(HeartbeatAcknowledged).next_sample == 4000


def test_the_client_hears_how_far_the_server_has_its_audio() -> None:
    made = call()
    for n in range(25):
        made.send(placed(n * 1600 + (800 if n > 3 else 0)))
    reports = made.client.of(InputAccepted)
    assert [(r.next_sample, r.missing_samples) for r in reports] == [(16800, 800), (32800, 800)]


def test_a_client_that_gives_no_positions_gets_no_reports() -> None:
    made = call()
    for _ in range(25):
        made.send(placed(None))
    assert made.client.of(InputAccepted) == []


def test_long_audio_finds_its_place_before_it_is_taken_in_slices() -> None:
    made = call()
    made.send(placed(0, 1600), placed(800, 80_000), placed(40_000, 80_000))
    made.clock.advance(1.0)
    assert made.machine.listening.audio.next_sample == 120_000


def test_long_audio_without_a_place_is_taken_as_it_comes() -> None:
    made = call()
    made.send(placed(None, 80_000))
    made.clock.advance(1.0)
    assert made.machine.listening.audio.next_sample == 80_000


def test_a_plain_patch_changes_a_duplex_session_too() -> None:
    made = call(idle_timeout_s=60.0)
    made.send(UpdateSession(session=SessionPatch(instructions="x")))
    assert (shown(made).instructions, shown(made).idle_timeout_s) == ("x", 60.0)


def test_audio_in_another_format_than_was_agreed_is_refused() -> None:
    made = call()
    made.send(placed(None, declared=PcmFormat(rate=24000), event_id="e"))
    error = made.client.error().error
    assert (error.code, error.param, error.event_id) == ("unsupported_audio_format", "format", "e")
    assert made.machine.listening.audio.next_sample == 0
    audio = AudioPatch(input=AudioInputPatch(format=FormatPatch(type="audio/pcmu")))
    made.send(UpdateSession(session=DuplexPatch(audio=audio)))
    made.send(AppendPlacedAudio(audio=b"\xff" * 800, declared=PcmuFormat()))
    assert made.machine.listening.audio.next_sample > 1500


def test_a_gap_that_is_too_long_is_refused_also_for_long_audio() -> None:
    made = call()
    made.send(placed(0), placed(10**9))
    made.send(placed(10**9, 80_000))
    made.clock.advance(1.0)
    assert [e.error.code for e in made.client.of(ErrorEvent)] == ["input_audio_gap"] * 2
    assert made.machine.listening.audio.next_sample == 1600
