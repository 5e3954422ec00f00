from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.clients.reconnect.sent_log import SentLog
from duologue.protocol.append_audio import AppendAudio, AppendPlacedAudio
from duologue.protocol.audio_formats import OpusFormat, PcmFormat, PcmuFormat
from duologue.protocol.commands import ClearAudio, Command, CommitAudio
from duologue.protocol.duplex.commands import AcknowledgeEvents, Heartbeat
from duologue.protocol.limits import MAX_INPUT_GAP_MS

PCM = PcmFormat(rate=24000)
ROOM = 1 << 20


def audio(start: int, samples: int) -> AppendPlacedAudio:
    return AppendPlacedAudio(audio=bytes(2 * samples), start_sample=start)


def test_what_the_server_has_is_forgotten() -> None:
    log = SentLog(ROOM)
    sent = [audio(0, 10), CommitAudio(event_id="c1"), audio(10, 10), ClearAudio(event_id="c2")]
    for command in sent:
        assert log.note(command, PCM) == command
    assert log.to_send_again() == sent
    log.confirm_audio(5)  # a part of it
    assert log.to_send_again() == sent
    log.confirm_audio(10)
    assert log.to_send_again() == sent[1:]
    log.confirm_audio(20)
    assert log.to_send_again() == sent[3:]
    log.confirm_command("c2")
    assert len(log) == 0
    assert log.held_bytes == 0


def test_the_first_message_may_be_confirmed_by_what_came_of_it() -> None:
    log = SentLog(ROOM)
    log.confirm_first()
    for number in range(2):
        log.note(ClearAudio(event_id=str(number)), PCM)
    log.confirm_first()
    assert [command.event_id for command in log.to_send_again()] == ["1"]


def test_a_command_that_is_not_known_confirms_nothing() -> None:
    log = SentLog(ROOM)
    log.note(CommitAudio(event_id="c1"), PCM)
    log.confirm_command("older")
    assert len(log.to_send_again()) == 1


def test_what_is_said_anew_is_not_sent_again_but_still_confirms() -> None:
    log = SentLog(ROOM)
    for number in range(3):
        log.note(AcknowledgeEvents(event_id=f"a{number}", server_event_seq=number), PCM)
    log.note(ClearAudio(event_id="c1"), PCM)
    log.note(Heartbeat(event_id="h1"), PCM)
    assert log.to_send_again() == [ClearAudio(event_id="c1")]
    assert len(log) == 3
    log.confirm_command("h1")
    assert len(log) == 0


def test_audio_without_a_place_is_not_kept() -> None:
    log = SentLog(ROOM)
    for command in (AppendAudio(audio=b"1234"), AppendPlacedAudio(audio=b"1234")):
        assert log.note(command, PCM) is command
    assert log.to_send_again() == []


def test_the_oldest_audio_goes_and_is_counted() -> None:
    log = SentLog(100)
    for start in range(0, 100, 20):
        log.note(audio(start, 20), PCM)
    assert log.held_bytes == 80
    assert log.dropped_samples == 60
    assert [c.start_sample for c in log.to_send_again() if isinstance(c, AppendPlacedAudio)] == [
        60,
        80,
    ]


def test_the_oldest_command_goes() -> None:
    log = SentLog(ROOM, commands=2)
    for number in range(4):
        log.note(ClearAudio(event_id=str(number)), PCM)
    assert [command.event_id for command in log.to_send_again()] == ["2", "3"]


@pytest.mark.parametrize(
    ("wire", "rate_hz"), [(PCM, 24000), (PcmuFormat(), 8000)], ids=["pcm", "pcmu"]
)
def test_a_hole_is_no_longer_than_a_server_waits_for(
    wire: PcmFormat | PcmuFormat, rate_hz: int
) -> None:
    log = SentLog(ROOM)
    size = 2 if isinstance(wire, PcmFormat) else 1
    log.note(AppendPlacedAudio(audio=bytes(100 * size), start_sample=0), wire)
    later = AppendPlacedAudio(audio=bytes(100 * size), start_sample=60 * rate_hz)
    moved = log.note(later, wire)
    assert isinstance(moved, AppendPlacedAudio)
    assert moved.start_sample == 100 + rate_hz * MAX_INPUT_GAP_MS // 1000
    # From there on it counts on.
    following = log.note(msgspec.structs.replace(later, start_sample=60 * rate_hz + 100), wire)
    assert isinstance(following, AppendPlacedAudio)
    assert following.start_sample == moved.start_sample + 100


def test_opus_counts_packets() -> None:
    packet = bytes([0b00011000 | 0]) + b"x"  # SILK, 60 ms
    log = SentLog(ROOM)
    log.note(AppendPlacedAudio(audio=b"\0\2" + packet, start_sample=0), OpusFormat(rate=24000))
    log.confirm_audio(24 * 60 - 1)
    assert len(log) == 1
    log.confirm_audio(24 * 60)
    assert len(log) == 0


@given(data=st.data())
def test_any_beginning_that_arrived_and_the_rest_are_all_there_was(data: st.DataObject) -> None:
    log = SentLog(ROOM)
    sent: list[Command] = []
    place = 0
    for number in range(data.draw(st.integers(0, 30))):
        if data.draw(st.booleans()):
            samples = data.draw(st.integers(1, 50))
            sent.append(audio(place, samples))
            place += samples
        else:
            sent.append(ClearAudio(event_id=f"c{number}"))
        log.note(sent[-1], PCM)
    known = 0
    for _ in range(data.draw(st.integers(1, 3))):
        arrived = sent[: data.draw(st.integers(known, len(sent)))]
        known = len(arrived)
        said = [c for c in arrived if isinstance(c, AppendPlacedAudio)]
        log.confirm_audio((said[-1].start_sample or 0) + len(said[-1].audio) // 2 if said else 0)
        ids = [c.event_id for c in arrived if c.event_id is not None]
        if ids:
            log.confirm_command(ids[-1])
    assert log.to_send_again() == sent[known:]
    assert log.held_bytes == sum(len(c.audio) for c in sent[known:] if isinstance(c, AppendAudio))
