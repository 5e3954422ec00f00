"""TLS: the certificate that the server shows, a real one or one made for development.

This module must not know what is served.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from duologue.core.errors import ConfigError
from duologue.gateway.settings import TlsSettings
from duologue.telemetry import Counter, Family

VALID_FOR = timedelta(days=90)
RENEWED_BEFORE = timedelta(days=7)
_SKEW = timedelta(hours=1)
"""Clocks of phones and virtual machines are behind."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its key, in files.

    Args:
        is_development: Nobody trusts it unless told to.
    """

    path: Path
    key_path: Path
    is_development: bool

    def fingerprint(self) -> str:
        """SHA-256 of the certificate, as browsers show it."""
        digest = _read(self.path).fingerprint(hashes.SHA256())
        return ":".join(f"{byte:02X}" for byte in digest)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Show this certificate from the next handshake on; calls that go on notice nothing.

        Raises:
            ConfigError: A file is missing, or certificate and key do not belong together.
        """
        try:
            context.load_cert_chain(self.path, self.key_path, password=_no_password)
        except (OSError, ValueError) as exc:
            raise ConfigError(
                f"cannot use the certificate {self.path} with the key {self.key_path}: "
                f"{getattr(exc, 'strerror', None) or exc}. Both are PEM; the key has no password."
            ) from exc


def choose_certificate(
    settings: TlsSettings, folder: Path, names: Iterable[str], wall_time: float
) -> Certificate | None:
    """Return the certificate of the settings, if TLS is wanted.

    Args:
        folder: Where a development certificate is kept.
        names: What the server is called, besides localhost; for a development certificate.

    Raises:
        ConfigError: The folder cannot be written to.
    """
    if settings.certificate is not None and settings.key is not None:
        return Certificate(settings.certificate, settings.key, is_development=False)
    if not settings.dev:
        return None
    certificate = Certificate(folder / "dev.pem", folder / "dev.key", is_development=True)
    wanted = _alternative_names(names)
    now = datetime.fromtimestamp(wall_time, UTC)
    try:
        if not _still_good(certificate, wanted, now):
            _make(certificate, wanted, now)
    except OSError as exc:
        raise ConfigError(
            f"cannot keep a development certificate in {folder}: {exc.strerror}"
        ) from exc
    return certificate


def server_context(
    certificate: Certificate, counts: Family[Counter] | None = None
) -> ssl.SSLContext:
    """Return the context that a server listens with.

    Args:
        counts: Of handshakes, by ``telemetry.metrics.HANDSHAKES``. One that begins, and is neither
            done nor refused, was left by its client or took too long.

    Raises:
        ConfigError: The certificate cannot be used.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    certificate.load_into(context)
    if counts is not None:
        context.sslobject_class = _counted(counts)
    return context


def _counted(counts: Family[Counter]) -> type[ssl.SSLObject]:
    """Return a class of TLS connections that count their handshakes."""

    class Counted(ssl.SSLObject):
        _has_begun = False

        def do_handshake(self) -> None:
            """Go on with the handshake; called again for each piece that comes."""
            if not self._has_begun:
                self._has_begun = True
                counts["begun"].inc()
            try:
                super().do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                raise
            except ssl.SSLError:
                counts["refused"].inc()
                raise
            counts["done"].inc()

    return Counted


def _alternative_names(names: Iterable[str]) -> list[x509.GeneralName]:
    found: dict[str, x509.GeneralName] = {}
    for name in ("localhost", "127.0.0.1", "::1", *names):
        try:
            found[name] = x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            if name.isascii():
                found[name] = x509.DNSName(name)
    return list(found.values())


def _still_good(
    certificate: Certificate, wanted: Iterable[x509.GeneralName], now: datetime
) -> bool:
    if not (certificate.path.is_file() and certificate.key_path.is_file()):
        return False
    try:
        held = _read(certificate.path)
    except ValueError:
        return False
    names = held.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    begun = held.not_valid_before_utc <= now
    return begun and now < held.not_valid_after_utc - RENEWED_BEFORE and set(wanted) <= set(names)


def _make(certificate: Certificate, names: Iterable[x509.GeneralName], now: datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Duologue development")])
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        # It signs nothing but itself: a key that leaks lets nobody pose as another server.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate.path.parent.mkdir(parents=True, exist_ok=True)
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    _write(certificate.key_path, secret, mode=0o600)
    _write(certificate.path, made.public_bytes(serialization.Encoding.PEM), mode=0o644)


def _write(path: Path, data: bytes, mode: int) -> None:
    """Replace a file at once, so that nobody reads half of it."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with open(descriptor, "wb") as file:
        file.write(data)
    fresh.replace(path)


def _read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def _no_password() -> str:
    # Otherwise OpenSSL would ask at the terminal, and the server would hang.
    raise ValueError("the key is encrypted")
