"""Settings of links between gateways and session hosts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from duologue.config import Section


class LinkSettings(Section):
    """How much may be under way on a link, and for how long a silent one is believed in."""

    output_window_bytes: Annotated[int, Field(ge=4096, le=16 * 1024 * 1024)] = 64 * 1024
    """Of one call: what its gateway may hold that has not been written to the client."""

    input_window_bytes: Annotated[int, Field(ge=4096, le=64 * 1024 * 1024)] = 1024 * 1024
    """Of one call: what a client has said and the session has not dealt with, before its
    connection is read no further. Eight times as much is refused."""
