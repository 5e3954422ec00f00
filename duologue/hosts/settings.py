"""Settings of links between gateways and session hosts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr

from duologue.config import Section


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

    link: LinkSettings = LinkSettings()
    """Links between them."""

    link_host: str = "127.0.0.1"
    """Address where a session host listens for gateways of other machines, see link_port."""

    link_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """Port for them; needs link_secret. None: gateways of this machine alone."""

    link_secret: Annotated[SecretStr, Field(min_length=16)] | None = None
    """What both ends of a link between machines must know."""
