"""Settings of WebRTC: the library, where peers reach us, and how long they may take."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

from duologue.config import Section


def _address(given: str | None) -> str | None:
    return None if given is None else str(ipaddress.ip_address(given))


class IceServer(Section):
    """A STUN or TURN server that helps peers to find each other."""

    url: Annotated[str, Field(pattern=r"^(stun|turn|turns):[^\s?:]+(:\d{1,5})?(\?transport=\w+)?$")]
    """As ``stun:host:3478``, ``turn:host:3478?transport=udp`` or ``turns:host:5349``."""

    username: str = ""
    """For TURN."""

    credential: SecretStr = SecretStr("")
    """For TURN."""


class WebRtcSettings(Section):
    """Calls over WebRTC; the extra ``webrtc`` brings the libraries."""

    backend: Literal["auto", "aiortc", "libdatachannel"] = "auto"
    """The library; ``auto`` takes aiortc. libdatachannel (Python 3.12 or newer) costs a third less,
    and its binding may stop the whole process when calls end: for trials only."""

    bind_address: Annotated[str | None, AfterValidator(_address)] = None
    """Use this address of the machine alone, as 127.0.0.1; empty: every one but the loopback's."""

    public_address: Annotated[str | None, AfterValidator(_address)] = None
    """The address that peers see instead, where a router or a cloud maps it to ours one to one."""

    ice_servers: tuple[IceServer, ...] = ()
    """STUN and TURN servers; needed only where peers cannot reach this machine directly."""

    gather_timeout_s: Annotated[float, Field(gt=0, le=5)] = 0.7
    """An answer waits so long for those servers at most."""

    connect_timeout_s: Annotated[float, Field(gt=0)] = 10.0
    """A peer that has not connected after so long is given up."""

    disconnect_timeout_s: Annotated[float, Field(ge=0)] = 10.0
    """A connection that the library reports as lost has so long to come back; libraries do so
    after some 30 s without a sign of life."""

    bitrate_bps: Annotated[int, Field(ge=6_000, le=128_000)] = 32_000
    """Of the speech that we send, in Opus."""

    complexity: Annotated[int, Field(ge=0, le=10)] = 5
    """Of its encoder: more is a little better and costs more."""
