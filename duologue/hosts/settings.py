"""Settings of links between gateways and session hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr

from duologue.config import Section

TOLD_PARTS = 4
"""Of a window: what was taken, or dealt with, is told when it is one of so many parts, not for each
message. Whoever sends has the rest of the window meanwhile."""


class LinkSettings(Section):
    """How much may be under way on a link, and for how long a silent one is believed in."""

    output_window_bytes: Annotated[int, Field(ge=4096, le=16 * 1024 * 1024)] = 64 * 1024
    """Of one call: what its gateway may hold that has not been written to the client."""

    input_window_bytes: Annotated[int, Field(ge=4096, le=64 * 1024 * 1024)] = 1024 * 1024
    """Of one call: what a client has said and the session has not dealt with, before its
    connection is read no further. Eight times as much is refused."""


class HostsSettings(Section):
    """Session hosts and gateways in processes of their own."""

    edges: Annotated[int, Field(ge=0, le=64)] = 0
    """So many gateway processes on one port, and one process that holds sessions and models.
    0: all in one process."""

    edge_silence_s: Annotated[float, Field(ge=3, le=3600)] = 7.0
    """A gateway process whose loop has not turned for so long is killed and started again: its
    clients come back to the others at once, and new ones are not caught in it."""

    host_silence_s: Annotated[float, Field(ge=3, le=3600)] = 60.0
    """The same for the process that holds sessions and models, whose calls end with it."""

    link: LinkSettings = LinkSettings()
    """Links between them."""

    link_host: str = "127.0.0.1"
    """Address where a session host listens for gateways of other machines, see link_port."""

    link_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """Port for them; needs link_secret. None: gateways of this machine alone."""

    role: Literal["all", "host", "gateways"] = "all"
    """What runs on this machine: ``host`` has no gateways, ``gateways`` have their hosts elsewhere,
    in the directory."""

    directory_url: SecretStr | None = None
    """Redis where session hosts register and gateways find them, as ``redis://redis.example:6379/0``
    (extra ``redis``). None: gateways know the host of their own machine alone."""

    directory_ttl_s: Annotated[float, Field(ge=1, le=300)] = 10.0
    """A host that has not renewed its entry for so long is not there."""

    link_address: str = ""
    """What gateways of other machines call this one; empty: link_host."""

    link_certificate: Path | None = None
    """Certificate that a session host shows to gateways of other machines; with link_key, links
    between machines are encrypted."""

    link_key: Path | None = None
    """Its private key."""

    link_ca: Path | None = None
    """Certificate by which a gateway believes hosts of other machines; links are encrypted then."""

    link_secret: Annotated[SecretStr, Field(min_length=16)] | None = None
    """What both ends of a link between machines must know."""
