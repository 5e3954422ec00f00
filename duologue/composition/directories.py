"""The directory that the settings name, and how links between machines are encrypted.

This module must not know what runs in this process.
"""

from __future__ import annotations

import ssl

from duologue.core.errors import ConfigError
from duologue.core.installation import install_command
from duologue.hosts.directory import Directory
from duologue.hosts.settings import HostsSettings


def configured_directory(settings: HostsSettings) -> Directory | None:
    """Return the directory; ``None`` where a gateway knows the host of its machine alone.

    Raises:
        ConfigError: The address cannot be used, or the package is not installed.
    """
    if settings.directory_url is None:
        return None
    if settings.link_secret is None:
        raise ConfigError("hosts.directory_url needs hosts.link_secret: links leave this machine")
    try:
        from duologue.hosts.redis_directory import RedisDirectory
    except ModuleNotFoundError as exc:
        raise ConfigError(
            f"hosts.directory_url needs the package '{exc.name}', which is not installed. "
            f"Install it with: {install_command('duologue[redis]')}"
        ) from exc
    try:
        return RedisDirectory(settings.directory_url.get_secret_value())
    except ValueError:
        raise ConfigError(
            "hosts.directory_url is no address of Redis: redis://host:port/number"
        ) from None


def link_secret(settings: HostsSettings) -> bytes:
    """Return what both ends of a link between machines must know; empty where there is none."""
    secret = settings.link_secret
    return b"" if secret is None else secret.get_secret_value().encode()


def host_context(settings: HostsSettings) -> ssl.SSLContext | None:
    """Return what a host encrypts links with; raises ``ConfigError``."""
    if settings.link_certificate is None and settings.link_key is None:
        return None
    if settings.link_certificate is None or settings.link_key is None:
        raise ConfigError("hosts.link_certificate and hosts.link_key belong together")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(settings.link_certificate, settings.link_key)
    except (OSError, ssl.SSLError) as exc:
        raise ConfigError(f"hosts.link_certificate cannot be used: {exc.strerror}") from exc
    return context


def gateway_context(settings: HostsSettings) -> ssl.SSLContext | None:
    """Return what a gateway believes hosts by; raises ``ConfigError``."""
    if settings.link_ca is None:
        return None
    try:
        return ssl.create_default_context(cafile=str(settings.link_ca))
    except (OSError, ssl.SSLError) as exc:
        raise ConfigError(f"hosts.link_ca cannot be used: {exc.strerror}") from exc
