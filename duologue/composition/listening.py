"""The address that a gateway listens on, and the certificate that it shows there.

This module must not know what is served.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from dataclasses import dataclass

from aiohttp import web

from duologue.core.errors import ConfigError
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.tls import Certificate, choose_certificate, server_context
from duologue.settings import Settings
from duologue.telemetry import Counter, Family


@dataclass(frozen=True, slots=True)
class Tls:
    """What the server shows to clients of https:// and wss://."""

    certificate: Certificate
    context: ssl.SSLContext

    def reload(self) -> None:
        """Read the certificate again; for one that was renewed.

        Raises:
            ConfigError: It cannot be used; the earlier one stays.
        """
        self.certificate.load_into(self.context)


def chosen_tls(
    settings: Settings, wall_time: float, handshakes: Family[Counter] | None = None
) -> Tls | None:
    """Return the certificate that the settings want.

    Args:
        handshakes: Counts them, see ``gateway.tls.server_context``.

    Raises:
        ConfigError: It cannot be used, or kept.
    """
    gateway = settings.gateway
    certificate = choose_certificate(
        gateway.tls,
        settings.artifacts.cache_dir / "tls",
        (socket.gethostname(), gateway.host),
        wall_time,
    )
    return (
        None if certificate is None else Tls(certificate, server_context(certificate, handshakes))
    )


async def listen(
    runner: web.AppRunner, gateway: GatewaySettings, tls: Tls | None, *, shared: bool = False
) -> None:
    """Listen.

    Args:
        shared: Other processes listen on the same port; the kernel spreads connections.

    Raises:
        ConfigError: The address cannot be had.
    """
    try:
        await _Site(runner, gateway, tls, shared=shared).start()
    except OSError as exc:
        raise ConfigError(why_not_listening(gateway, exc)) from exc


class _Site(web.BaseSite):
    """As ``web.TCPSite``, which does not bound handshakes."""

    def __init__(
        self, runner: web.AppRunner, gateway: GatewaySettings, tls: Tls | None, *, shared: bool
    ) -> None:
        super().__init__(runner, ssl_context=None if tls is None else tls.context, backlog=1024)
        self._gateway = gateway
        self._shared = shared

    @property
    def name(self) -> str:
        """Where it listens."""
        return f"{self._gateway.host}:{self._gateway.port}"

    async def start(self) -> None:
        """Listen."""
        await super().start()
        server = self._runner.server
        assert server is not None, "the runner was set up"
        context = self._ssl_context
        self._server = await asyncio.get_running_loop().create_server(
            server,
            self._gateway.host,
            self._gateway.port,
            ssl=context,
            ssl_handshake_timeout=(
                None if context is None else self._gateway.tls.handshake_timeout_s
            ),
            backlog=self._backlog,
            reuse_port=self._shared or None,
        )


def why_not_listening(gateway: GatewaySettings, exc: OSError) -> str:
    """Return what to tell whoever starts the server, and what to change."""
    place = f"cannot listen on {gateway.host}:{gateway.port}"
    match exc.errno:
        case errno.EADDRINUSE:
            return (
                f"{place}: another program does, perhaps a Duologue. Stop it, or choose another "
                "port with --gateway.port, or 0 for any free one."
            )
        case errno.EACCES:
            return f"{place}: ports below 1024 need rights. Choose another with --gateway.port."
        case _:
            return (
                f"{place}: this is not an address of this machine. --gateway.host is 127.0.0.1 for "
                "this machine alone, 0.0.0.0 for its networks."
            )


def url_of(host: str, runner: web.AppRunner, tls: Tls | None) -> str:
    """Return the address to show; the port is the one that was taken."""
    port = runner.addresses[0][1]
    shown = "localhost" if host in ("127.0.0.1", "0.0.0.0", "::1", "::") else host
    return f"{'http' if tls is None else 'https'}://{shown}:{port}"
