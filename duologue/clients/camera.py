"""Frames of a camera beside a call: what can be shown, and to whom.

The server keeps two a second, of those that come faster the newest, and gives each turn of the
person some of them. This module must not know how frames travel.
"""

from __future__ import annotations

from duologue.clients.arguments import checked_bytes
from duologue.core.errors import ConfigError
from duologue.protocol.duplex.commands import ShowFrame
from duologue.protocol.duplex.session_resource import DuplexCapabilities


def frame_of(
    picture: bytes, frame_id: str | None, capabilities: DuplexCapabilities | None
) -> ShowFrame:
    """Return the command that shows a frame.

    Args:
        picture: A JPEG, PNG or WebP file.
        frame_id: Repeated in the events that say what became of it.
        capabilities: Of the call; ``None``: it is not of the duplex dialect.

    Raises:
        ConfigError: Nobody would see it.
        TypeError: It is no bytes.
    """
    data = checked_bytes(picture, "a picture")
    if capabilities is None:
        raise ConfigError('frames need the duplex dialect: connect with dialect="duplex"')
    if not capabilities.supports_pictures:
        raise ConfigError("the model of this call does not see: capabilities.supports_pictures")
    return ShowFrame(data=data, frame_id=frame_id)
