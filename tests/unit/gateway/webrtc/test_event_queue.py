from __future__ import annotations

import json

import pytest

from duologue.core.errors import LimitExceeded
from duologue.gateway.webrtc.event_queue import (
    MAX_WAITING_BYTES,
    MAX_WAITING_EVENTS,
    ChannelWriter,
    Observer,
)
from duologue.protocol.commands import ClearAudio, Command
from duologue.protocol.events import AudioCleared, ErrorBody, ItemDeleted
from duologue.protocol.json_codec import REALTIME_JSON
from tests.fakes.peer import FakePeer

DELETED = ItemDeleted(item_id="item_1")


class Nobody:
    """A listener whose peer is only written to."""


def writer(max_message_bytes: int = 65_536) -> tuple[ChannelWriter, FakePeer]:
    peer = FakePeer(Nobody())  # type: ignore[arg-type]
    return ChannelWriter(peer, REALTIME_JSON, max_message_bytes), peer


def test_events_are_numbered_and_written_at_once() -> None:
    out, peer = writer()
    out.put(DELETED)
    out.put(AudioCleared())
    assert [event["event_id"] for event in peer.events] == ["event_1", "event_2"]
    assert out.is_empty


def test_what_the_channel_does_not_take_waits_in_order() -> None:
    out, peer = writer()
    peer.stuck = True
    out.put(DELETED)
    out.put(AudioCleared())
    assert peer.messages == []
    assert out.waiting_bytes > 0
    assert not out.is_empty
    peer.stuck = False
    out.flush()
    assert peer.types == ["conversation.item.deleted", "input_audio_buffer.cleared"]
    assert out.waiting_bytes == 0


def test_enough_is_a_number_of_bytes() -> None:
    out, peer = writer()
    peer.stuck = True
    while not out.is_full:
        out.put(DELETED)
    assert out.waiting_bytes - MAX_WAITING_BYTES < 200


def test_an_event_that_the_peer_cannot_take_is_said_to_be_too_long() -> None:
    out, peer = writer(400)
    out.put(ItemDeleted(item_id="x" * 1000))
    out.put(DELETED)
    error, deleted = peer.events
    assert error["error"]["code"] == "message_too_large"
    assert "limit is 400" in error["error"]["message"]
    assert [error["event_id"], deleted["event_id"]] == ["event_1", "event_2"]


class Watcher:
    """An attachment of an observer."""

    def __init__(self) -> None:
        self.woken = 0
        self.ended: list[str] = []

    def on_output(self) -> None:
        self.woken += 1

    def on_end(self, reason: str) -> None:
        self.ended.append(reason)


def observer() -> tuple[Observer, list[Command], list[Observer]]:
    said: list[Command] = []
    left: list[Observer] = []
    return Observer("rtc_1", said.append, left.append), said, left


def test_one_who_looks_on_is_woken_once_and_takes_everything() -> None:
    looking, _, _ = observer()
    looking.put(DELETED)
    watcher = Watcher()
    looking.attach(watcher)
    looking.put(AudioCleared())
    assert watcher.woken == 1
    batch = looking.pull(1)
    assert [delivery.seq for delivery in batch.deliveries] == [1, 2]
    assert not batch.more
    looking.put(DELETED)
    assert watcher.woken == 2


def test_what_he_says_goes_to_the_call_and_his_mistakes_are_his_own() -> None:
    looking, said, _ = observer()
    looking.offer(ClearAudio())
    assert said == [ClearAudio()]
    looking.reject(ErrorBody(type="invalid_request_error", message="no"))
    (delivery,) = looking.pull(1).deliveries
    assert json.loads(REALTIME_JSON.encode_event(delivery.event, 1) or b"")["type"] == "error"
    looking.played("item", 1)


def test_he_leaves_and_the_call_goes_on() -> None:
    looking, _, left = observer()
    watcher = Watcher()
    looking.attach(watcher)
    looking.detach(watcher)
    assert left == [looking]
    looking.put(DELETED)
    assert looking.pull(1).deliveries == []
    looking.close("closed")
    assert left == [looking]


def test_one_who_takes_nothing_is_sent_away() -> None:
    looking, _, left = observer()
    watcher = Watcher()
    looking.attach(watcher)
    for _ in range(MAX_WAITING_EVENTS + 1):
        looking.put(DELETED)
    assert watcher.ended == ["client_too_slow"]
    assert left == [looking]


def test_a_call_that_is_over_before_he_is_there_ends_for_him_too() -> None:
    looking, _, _ = observer()
    looking.close("session_expired")
    watcher = Watcher()
    looking.attach(watcher)
    assert watcher.ended == ["session_expired"]


def test_a_refusal_of_the_call_is_his_to_hear() -> None:
    def refuse(_command: Command) -> None:
        raise LimitExceeded("full")

    looking = Observer("rtc_1", refuse, lambda _: None)
    with pytest.raises(LimitExceeded, match="full"):
        looking.offer(ClearAudio())
