from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.core.errors import ProtocolError
from duologue.hosts.link_struct import Packed
from duologue.hosts.messages import LinkMessage
from duologue.hosts.packing import (
    COMMANDS,
    EVENTS,
    MESSAGE_BYTES,
    pack_command,
    pack_deliveries,
    pack_event,
    unpack_command,
    unpack_deliveries,
    unpack_event,
    weight,
)
from duologue.protocol.commands import UpdateSession
from duologue.protocol.duplex.commands import AcknowledgeEvents
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.duplex.session_resource import DuplexSessionResource
from duologue.protocol.events import (
    AudioCleared,
    ErrorBody,
    ErrorEvent,
    ResumableSessionCreated,
    SessionCreated,
    SessionUpdated,
)
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.port import Delivery
from tests.unit.protocol.messages import of

BODY = ErrorBody(type="server_error", message="It broke.")


@pytest.mark.parametrize("kind", COMMANDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=25)
def test_every_command_comes_back_as_it_was(kind: type[Any], data: st.DataObject) -> None:
    command = data.draw(of(kind))
    again = unpack_command(pack_command(command))
    assert type(again) is kind
    assert again == command


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=25)
def test_every_event_comes_back_as_it_was(kind: type[Any], data: st.DataObject) -> None:
    event = data.draw(of(kind))
    again = unpack_event(pack_event(event))
    assert type(again) is kind
    assert again == event


def test_no_class_of_the_wire_is_left_out() -> None:
    for table in (COMMANDS, EVENTS):
        for kind in table:
            for below in kind.__subclasses__():
                of_clients = below.__module__.startswith("duologue.protocol.client_")
                ours = below.__module__ == "duologue.hosts.packing"
                assert of_clients or ours or below in table, below


@pytest.mark.parametrize("kind", [SessionCreated, SessionUpdated, ResumableSessionCreated])
@given(data=st.data())
@settings(max_examples=10)
def test_a_duplex_session_is_shown_whole(kind: type[Any], data: st.DataObject) -> None:
    event = msgspec.structs.replace(
        data.draw(of(kind)), session=data.draw(of(DuplexSessionResource))
    )
    again = unpack_event(pack_event(event))
    assert type(again) is kind
    assert again == event


def test_a_change_is_of_the_dialect_that_it_was_made_in() -> None:
    for patch in (DuplexPatch(overlap_barge_in_ms=300), DuplexPatch(), SessionPatch()):
        again = unpack_command(pack_command(UpdateSession(session=patch)))
        assert isinstance(again, UpdateSession)
        assert type(again.session) is type(patch)
        assert again.session == patch


def test_a_command_that_no_link_can_carry_is_refused() -> None:
    with pytest.raises(ProtocolError, match="cannot be passed on"):
        pack_command(AcknowledgeEvents(server_event_seq=10**30))


def test_numbers_stay_with_their_events() -> None:
    deliveries = [Delivery(0, AudioCleared()), Delivery(7, ErrorEvent(error=BODY))]
    assert unpack_deliveries(pack_deliveries(deliveries)) == deliveries


def test_both_ends_weigh_alike() -> None:
    packed = pack_command(UpdateSession(session=SessionPatch()))
    assert weight(packed) == MESSAGE_BYTES + len(packed.body) > MESSAGE_BYTES


def test_what_cannot_be_read_is_an_error_of_one_kind() -> None:
    with pytest.raises(msgspec.MsgspecError):
        unpack_event(Packed(0, msgspec.Raw(b"\x01")))
    with pytest.raises(msgspec.MsgspecError):
        unpack_event(Packed(10_000, msgspec.Raw(b"\x01")))


@pytest.mark.parametrize("kind", get_args(LinkMessage), ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=10)
def test_every_message_of_a_link_comes_back_as_it_was(kind: type[Any], data: st.DataObject) -> None:
    written = msgspec.msgpack.encode([data.draw(of(kind))])
    again = msgspec.msgpack.decode(written, type=list[LinkMessage])
    assert type(again[0]) is kind
    assert msgspec.msgpack.encode(again) == written
