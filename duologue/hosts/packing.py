"""Commands and events in MessagePack, for a link between two processes of the same release.

Not a dialect: nothing is checked again, audio is bytes, and every class comes back as itself, also
where the wire of clients gives several the same ``type``. This module must not know links.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast, get_args

import msgspec

from duologue.hosts.link_struct import NumberedEvent, Packed
from duologue.protocol.append_audio import AppendPlacedAudio
from duologue.protocol.commands import Command, UpdateSession
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.duplex.session_resource import DuplexSessionResource
from duologue.protocol.errors import refused
from duologue.protocol.events import (
    Event,
    ResumableSessionCreated,
    SessionCreated,
    SessionUpdated,
)
from duologue.protocol.response_events import FormattedAudioDelta
from duologue.sessions.port import Delivery

MESSAGE_BYTES = 64
"""What a message counts as, besides its body."""

T = TypeVar("T", bound=msgspec.Struct)

_encode = msgspec.msgpack.Encoder().encode


class _DuplexUpdate(UpdateSession, frozen=True, kw_only=True, tag="session.update"):
    session: DuplexPatch


class _DuplexCreated(SessionCreated, frozen=True, kw_only=True, tag="session.created"):
    session: DuplexSessionResource


class _DuplexResumable(ResumableSessionCreated, frozen=True, kw_only=True, tag="session.created"):
    session: DuplexSessionResource


class _DuplexUpdated(SessionUpdated, frozen=True, kw_only=True, tag="session.updated"):
    session: DuplexSessionResource


_WIDER: dict[type[msgspec.Struct], tuple[type[msgspec.Struct], type[msgspec.Struct]]] = {
    UpdateSession: (DuplexPatch, _DuplexUpdate),
    SessionCreated: (DuplexSessionResource, _DuplexCreated),
    ResumableSessionCreated: (DuplexSessionResource, _DuplexResumable),
    SessionUpdated: (DuplexSessionResource, _DuplexUpdated),
}
"""Classes whose ``session`` may be of a class that says more than the field does: that class, and
one that is read in place of theirs."""

COMMANDS: tuple[type[msgspec.Struct], ...] = (*get_args(Command), AppendPlacedAudio)
EVENTS: tuple[type[msgspec.Struct], ...] = (
    *get_args(Event),
    ResumableSessionCreated,
    FormattedAudioDelta,
)


class _Table:
    """Classes by their number: the place of each, then those that are read in place of others."""

    def __init__(self, classes: Sequence[type[msgspec.Struct]]) -> None:
        self._kinds = {one: kind for kind, one in enumerate(classes)}
        self._read: list[Callable[[bytes], Any]] = [
            msgspec.msgpack.Decoder(one).decode for one in classes
        ]
        self._wider: dict[type[msgspec.Struct], tuple[type[msgspec.Struct], int]] = {}
        for one, (session, stand_in) in _WIDER.items():
            if one in self._kinds:
                self._wider[one] = session, len(self._read)
                self._read.append(_reader_of(one, stand_in))

    def pack(self, value: msgspec.Struct) -> Packed:
        """Write a value of one of the classes.

        Raises:
            ProtocolError: It holds an integer beyond 64 bits.
        """
        of_class = type(value)
        kind = self._kinds[of_class]
        if of_class in self._wider:
            session, wider = self._wider[of_class]
            if isinstance(value.session, session):  # type: ignore[attr-defined]
                kind = wider
        try:
            return Packed(kind, msgspec.Raw(_encode(value)))
        except OverflowError as exc:
            raise refused(f"the message cannot be passed on: {exc}", None) from exc

    def unpack(self, packed: Packed) -> Any:
        """Read one; raises ``msgspec.MsgspecError`` where it is none."""
        if not 0 <= packed.kind < len(self._read):
            raise msgspec.ValidationError(f"there is no message of kind {packed.kind}")
        return self._read[packed.kind](packed.body)


def _reader_of(
    one: type[msgspec.Struct], stand_in: type[msgspec.Struct]
) -> Callable[[bytes], msgspec.Struct]:
    decode = msgspec.msgpack.Decoder(stand_in).decode

    def read(body: bytes) -> msgspec.Struct:
        wide = decode(body)
        return one(**{name: getattr(wide, name) for name in one.__struct_fields__})

    return read


_commands = _Table(COMMANDS)
_events = _Table(EVENTS)


def pack_command(command: Command) -> Packed:
    """Write a command."""
    return _commands.pack(command)


def unpack_command(packed: Packed) -> Command:
    """Read a command.

    Raises:
        msgspec.MsgspecError: It is none: the other end is not of this release.
    """
    return cast(Command, _commands.unpack(packed))


def pack_event(event: Event) -> Packed:
    """Write an event."""
    return _events.pack(event)


def unpack_event(packed: Packed) -> Event:
    """Read an event.

    Raises:
        msgspec.MsgspecError: As in ``unpack_command``.
    """
    return cast(Event, _events.unpack(packed))


def pack_deliveries(deliveries: Sequence[Delivery]) -> list[NumberedEvent]:
    """Write numbered events."""
    return [NumberedEvent(delivery.seq, pack_event(delivery.event)) for delivery in deliveries]


def unpack_deliveries(events: Sequence[NumberedEvent]) -> list[Delivery]:
    """Read numbered events."""
    return [Delivery(event.seq, unpack_event(event.event)) for event in events]


def weight(packed: Packed) -> int:
    """What a command or an event counts as, for either end."""
    return MESSAGE_BYTES + len(packed.body)
