from __future__ import annotations

from typing import Any

from duologue.hosts.messages import (
    Applied,
    Attach,
    ChannelEnded,
    ChannelOutput,
    CloseChannel,
    Detach,
    Said,
    Silenced,
    Taken,
)
from duologue.hosts.outbox import Outbox
from duologue.hosts.packing import pack_command, pack_event, weight
from duologue.hosts.served_channel import ServedChannel
from duologue.hosts.settings import TOLD_PARTS, LinkSettings
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.events import AudioCleared
from tests.fakes.link import FakeSession, sound

WINDOW = LinkSettings(output_window_bytes=4096, input_window_bytes=4096)


class Scene:
    def __init__(self, *, attached: bool = True) -> None:
        self.session = FakeSession()
        self.outbox = Outbox(lambda: None)
        self.over: list[int] = []
        self.channel = ServedChannel(7, self.session, self.outbox, WINDOW, self.over.append)
        if attached:
            self.channel.receive(Attach(7))

    def sent(self) -> list[Any]:
        return list(self.outbox.take())


def test_output_is_sent_as_far_as_the_other_end_has_room() -> None:
    scene = Scene()
    size = weight(pack_event(sound("a", b"\x01" * 1000)))
    scene.session.say(*[sound("a", b"\x01" * 1000) for _ in range(10)])
    first = scene.sent()
    assert len(first) == -(-4096 // size)
    scene.channel.receive(Taken(7, 2 * size))
    assert len(scene.sent()) == 2


def test_what_was_dealt_with_is_told_in_parts_of_the_window() -> None:
    scene = Scene()
    packed = pack_command(AppendAudio(audio=bytes(400)))
    told = []
    for _ in range(6):
        scene.channel.receive(Said(7, packed))
        told += scene.sent()
    per_part = -(-WINDOW.input_window_bytes // TOLD_PARTS // weight(packed))
    assert told == [Applied(7, per_part * weight(packed))] * (6 // per_part)
    assert told


def test_where_the_socket_is_full_nothing_is_pulled_until_it_is_not() -> None:
    scene = Scene()
    scene.outbox.writable = False
    scene.session.say(AudioCleared())
    assert scene.session.pulled == []
    scene.outbox.writable = True
    scene.channel.go_on()
    (output,) = scene.sent()
    assert isinstance(output, ChannelOutput)
    scene.channel.go_on()
    assert scene.sent() == []


def test_an_interruption_names_what_was_sent_by_then() -> None:
    scene = Scene()
    scene.session.say(sound("a"), sound("a"))
    scene.sent()
    scene.channel.on_silenced("a", ["resp_2"])
    assert scene.sent() == [Silenced(7, "a", 3, ("resp_2",))]


def test_an_end_takes_all_that_is_left_with_it_but_not_within_the_call() -> None:
    scene = Scene()
    scene.outbox.writable = False
    scene.session.say(*[AudioCleared() for _ in range(100)])
    scene.session.end("closed")
    assert scene.session.pulled == []
    messages = scene.sent()
    assert messages[-1] == ChannelEnded(7, "closed")
    assert len(scene.session.pulled) == 100
    assert scene.over == [7]
    scene.channel.on_end("closed")
    scene.channel.on_let_go("stale_lease", ())
    scene.channel.on_silenced("a")
    scene.channel.on_pressure(True)
    assert scene.sent() == []


def test_a_lost_link_is_a_lost_connection_or_nobody_who_came() -> None:
    attached, opened = Scene(), Scene(attached=False)
    attached.channel.lost()
    opened.channel.lost()
    assert (attached.session.detached, attached.session.closed) == (1, None)
    assert (opened.session.detached, opened.session.closed) == (0, "client_gone")


def test_the_other_end_may_detach_or_close() -> None:
    scene = Scene()
    scene.channel.receive(Detach(7))
    assert (scene.session.detached, scene.over) == (1, [7])
    scene = Scene(attached=False)
    scene.channel.receive(CloseChannel(7, "client_gone"))
    assert (scene.session.closed, scene.over) == ("client_gone", [7])
