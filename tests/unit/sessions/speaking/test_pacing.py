"""How far ahead of playback speech is sent, and in what pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.duplex_plugins.contract import Capabilities
from duologue.protocol.events import AudioCleared
from duologue.protocol.response_events import (
    OutputTextDelta,
)
from duologue.sessions.settings import SessionSettings
from duologue.sessions.speaking.pacing import Pace, pace_of
from duologue.sessions.speaking.response import ResponseState
from tests.unit.sessions.speaking_bench import RATE_HZ, Bench, T, done, pcm, pieces

# Pace


def test_speech_is_sent_in_pieces_at_most_the_lead_ahead_of_playback() -> None:
    bench = Bench(Pace(lead_ms=1000, delta_ms=200))
    response = bench.begin()
    bench.speaking.say_audio(response, pcm(3000), (), T)
    assert bench.sent_ms(T) == [200] * 5
    assert not bench.speaking.has_output()
    assert bench.speaking.pacing.paced_until == pytest.approx(T + 0.2)
    assert bench.sent_ms(T + 0.1) == []
    assert bench.sent_ms(T + 0.2) == [200]
    assert bench.sent_ms(T + 1.0) == [200] * 4


def test_a_model_that_remembers_what_it_said_is_not_sent_far_ahead() -> None:
    model = Capabilities(lead_ms=240, frame_ms=80)
    pace = pace_of(SessionSettings(), model)
    bench = Bench(pace)
    bench.speaking.say_audio(bench.begin(), pcm(1000), (), T)
    assert bench.sent_ms(T) == [80] * 3
    assert bench.sent_ms(T + 0.079) == []
    assert bench.sent_ms(T + 0.081) == [80]
    assert pace_of(SessionSettings(send_lead_ms=160), model).lead_ms == 160
    assert pace_of(SessionSettings(send_lead_ms=0), model).lead_ms == 240


def test_other_models_are_sent_as_the_settings_say() -> None:
    settings = SessionSettings(send_lead_ms=0, delta_ms=120, merge_ms=60)
    assert pace_of(settings) == Pace(lead_ms=None, delta_ms=120, merge_ms=60)


def test_without_a_lead_everything_is_sent_at_once() -> None:
    bench = Bench(Pace(lead_ms=None, delta_ms=200))
    bench.speaking.say_audio(bench.begin(), pcm(3000), (), T)
    assert sum(bench.sent_ms(T)) == 3000
    assert bench.speaking.pacing.paced_until is None


def test_with_nothing_to_pace_or_merge_each_piece_goes_as_it_is() -> None:
    bench = Bench(Pace(lead_ms=None, merge_ms=0))
    response = bench.begin()
    for ms in (40, 20, 700):
        bench.speaking.say_audio(response, pcm(ms), (), T)
        assert sum(bench.sent_ms(T)) == ms


def test_events_do_not_wait_for_the_pace() -> None:
    bench = Bench(Pace(lead_ms=200, delta_ms=200))
    bench.speaking.say_audio(bench.begin(), pcm(3000), (), T)
    bench.pull()
    assert not bench.speaking.has_output()
    bench.speaking.emit(AudioCleared())
    assert bench.speaking.has_output()
    assert bench.pull() == [AudioCleared()]


def test_the_first_speech_goes_at_once_however_short() -> None:
    bench = Bench()
    bench.speaking.say_audio(bench.begin(), pcm(20), (), T)
    assert bench.sent_ms(T) == [20]


def test_short_pieces_wait_to_be_merged_unless_the_person_would_run_dry() -> None:
    bench = Bench(Pace(merge_ms=100, dry_ms=250))
    response = bench.begin()
    bench.speaking.say_audio(response, pcm(400), (), T)
    bench.pull()
    bench.speaking.say_audio(response, pcm(40), (), T)
    assert bench.sent_ms(T) == []
    assert bench.speaking.pacing.paced_until == pytest.approx(T + 0.15)
    assert not bench.speaking.has_output()
    assert bench.sent_ms(T + 0.15) == [40]


def test_a_piece_that_has_grown_long_enough_goes_at_once() -> None:
    bench = Bench(Pace(merge_ms=100))
    response = bench.begin()
    bench.speaking.say_audio(response, pcm(400), (), T)
    bench.pull()
    bench.speaking.say_audio(response, pcm(40), (), T)
    bench.pull()
    bench.speaking.say_audio(response, pcm(59), (), T)
    assert not bench.speaking.has_output()
    bench.speaking.say_audio(response, pcm(1), (), T)
    assert bench.speaking.has_output()
    assert bench.sent_ms(T) == [100]


def test_the_last_piece_of_an_answer_waits_for_nothing() -> None:
    bench = Bench(Pace(merge_ms=100))
    response = bench.begin()
    bench.speaking.say_audio(response, pcm(440), (), T)
    assert bench.sent_ms(T) == [200, 200]
    bench.speaking.generated(response, "completed", "", None)
    assert bench.speaking.has_output()
    events = bench.pull()
    assert pieces(events) == [40]
    done(events)


def test_a_full_transport_takes_a_part_and_the_rest_later() -> None:
    bench = Bench()
    bench.speaking.say_audio(bench.begin(), pcm(1000), (), T)
    assert bench.sent_ms(T, max_bytes=9600) == [200]
    assert bench.speaking.has_output()
    assert sum(bench.sent_ms(T)) == 800


def test_a_full_transport_takes_a_part_of_the_text_too_and_the_rest_can_be_taken_back() -> None:
    bench = Bench()
    response = bench.begin(output_modalities=("text",))
    for _ in range(100):
        bench.speaking.say_text(response, "x" * 744, T)
    taken = bench.pull(max_bytes=10_000)
    assert sum(isinstance(event, OutputTextDelta) for event in taken) <= 10
    bench.speaking.cut_off(response, "cancelled", "client_cancelled", T)
    assert not any(isinstance(event, OutputTextDelta) for event in bench.pull())


@given(
    chunks=st.lists(st.integers(1, 700), min_size=1, max_size=20),
    waits=st.lists(st.floats(0, 1.5), min_size=1, max_size=40),
)
def test_the_lead_is_kept_and_nothing_is_lost_or_doubled(
    chunks: list[int], waits: list[float]
) -> None:
    pace = Pace(lead_ms=1000, delta_ms=200, merge_ms=100, dry_ms=250)
    bench = Bench(pace)
    response, now, sent = bench.begin(), T, 0
    for ms in chunks:
        bench.speaking.say_audio(response, pcm(ms), (), now)
    bench.speaking.generated(response, "completed", "", None)
    for wait_s in [*waits, 60.0]:
        now += wait_s
        sent += sum(bench.sent_ms(now))
        assert bench.speaking.playback.lead_s(now) <= 1.0 + 1 / RATE_HZ
        while wait_s == 60.0 and bench.speaking.pacing.paced_until is not None:
            now = bench.speaking.pacing.paced_until
            sent += sum(bench.sent_ms(now))
    assert sent == sum(chunks)
    assert response.state is ResponseState.ENDED
