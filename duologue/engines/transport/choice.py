"""Which way large payloads take to and from the workers of a stage. Pure.

A stage may ask for one by name; otherwise where its workers run says which. This module must not
know how any of them works.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from duologue.core.errors import ConfigError

AUTO: Final = "auto"
REFERENCE: Final = "reference"
SLAB: Final = "slab"
ZEROMQ: Final = "zeromq"
NIXL: Final = "nixl"
LINK: Final = "link"

BETWEEN_HOSTS = frozenset({ZEROMQ, NIXL})
"""Those whose payloads are asked for over the network, wherever their readers are."""

ALLOWED: Mapping[str, tuple[str, ...]] = {
    "inline": (REFERENCE,),
    "process": (SLAB, ZEROMQ, NIXL, LINK),
    "ray": (ZEROMQ, NIXL, LINK),
}
"""By executor; the first is what ``auto`` means, where it can be had.

``reference``: the objects themselves. ``slab``: memory that processes of one machine share.
``zeromq``, ``nixl``: between machines. ``link``: within the messages, whatever their size."""


def check_transport(executor: str, asked: str, where: str) -> None:
    """Check that workers of an executor can be reached so.

    Args:
        where: What the stage is called in an error.

    Raises:
        ConfigError: They cannot.
    """
    allowed = ALLOWED[executor]
    if asked != AUTO and asked not in allowed:
        names = ", ".join((AUTO, *allowed))
        raise ConfigError(
            f"{where}: the transport {asked!r} does not go with the executor {executor!r}; "
            f"there are {names}"
        )


def choose_transport(
    executor: str, asked: str, *, room_bytes: int, interpreter: str | None, package: str = "zmq"
) -> str:
    """Return the transport of a stage's workers.

    Args:
        room_bytes: For payloads that were not read yet; without any, all goes with the messages.
        interpreter: Of the workers, if it is one of their own: what it has installed is not known
            here, so it is only relied on where the stage asks for that.
        package: What ZeroMQ needs here.
    """
    first = ALLOWED[executor][0]
    if not room_bytes and first != REFERENCE:
        return LINK
    if asked != AUTO:
        return asked
    if first == ZEROMQ and (interpreter is not None or find_spec(package) is None):
        return LINK
    return first
