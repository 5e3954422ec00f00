from __future__ import annotations

import ssl
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from pydantic import ValidationError

from duologue.core.errors import ConfigError
from duologue.gateway.settings import TlsSettings
from duologue.gateway.tls import (
    RENEWED_BEFORE,
    VALID_FOR,
    Certificate,
    choose_certificate,
    server_context,
)
from duologue.telemetry import Counter, Family
from duologue.telemetry.metrics import HANDSHAKES

DEV = TlsSettings(dev=True)
NOW = datetime.now(UTC).timestamp()


def made(folder: Path, *names: str, now: float = NOW) -> Certificate:
    certificate = choose_certificate(DEV, folder / "tls", names, now)
    assert certificate is not None
    return certificate


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> bytes:
    """Let two ends meet in memory; the certificate that the client has seen."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = list(ends)
    while waiting:
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                pass
    seen = ends[0].getpeercert(binary_form=True)
    assert seen is not None
    return seen


def test_without_settings_there_is_no_tls(tmp_path: Path) -> None:
    assert choose_certificate(TlsSettings(), tmp_path, (), NOW) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1", "box.lan", "10.1.2.3"])
def test_a_client_that_was_told_to_trusts_the_development_certificate(
    tmp_path: Path, name: str
) -> None:
    certificate = made(tmp_path, "box.lan", "10.1.2.3", "nicht-ascii-ü")
    trusting = ssl.create_default_context(cafile=certificate.path)
    trusting.verify_flags |= ssl.VERIFY_X509_STRICT
    assert handshake(server_context(certificate), trusting, name)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server_context(certificate), trusting, "other.lan")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server_context(certificate), ssl.create_default_context(), name)


def test_its_key_is_for_its_owner_alone_and_its_fingerprint_is_that_of_browsers(
    tmp_path: Path,
) -> None:
    certificate = made(tmp_path)
    assert certificate.is_development
    assert stat.S_IMODE(certificate.key_path.stat().st_mode) == 0o600
    assert len(certificate.fingerprint().split(":")) == 32


def test_it_is_kept_until_it_nears_its_end_or_lacks_a_name(tmp_path: Path) -> None:
    first = made(tmp_path).fingerprint()
    assert made(tmp_path).fingerprint() == first
    nearly = NOW + (VALID_FOR - RENEWED_BEFORE).total_seconds()
    assert made(tmp_path, now=nearly - 10).fingerprint() == first
    second = made(tmp_path, now=nearly + 10).fingerprint()
    assert second != first
    third = made(tmp_path, "box.lan", now=nearly + 20).fingerprint()
    assert third != second
    assert made(tmp_path, now=nearly + 20).fingerprint() == third
    (tmp_path / "tls/dev.pem").write_text("nonsense")
    assert made(tmp_path, now=nearly + 20).fingerprint() != third
    (tmp_path / "tls/dev.key").unlink()
    server_context(made(tmp_path))


def test_a_renewed_certificate_is_shown_from_the_next_handshake_on(tmp_path: Path) -> None:
    certificate = made(tmp_path)
    context = server_context(certificate)
    untrusting = ssl.create_default_context()
    untrusting.check_hostname = False
    untrusting.verify_mode = ssl.CERT_NONE
    before = handshake(context, untrusting, "localhost")
    made(tmp_path, "box.lan")
    assert handshake(context, untrusting, "localhost") == before
    certificate.load_into(context)
    after = handshake(context, untrusting, "localhost")
    assert x509.load_der_x509_certificate(after) != x509.load_der_x509_certificate(before)


def test_files_that_cannot_be_used_are_refused_with_the_reason(tmp_path: Path) -> None:
    ours, other = made(tmp_path / "a"), made(tmp_path / "b")
    key = serialization.load_pem_private_key(ours.key_path.read_bytes(), None)
    locked = tmp_path / "locked.key"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    for path, key_path in (
        (tmp_path / "absent", ours.key_path),
        (ours.path, tmp_path / "absent"),
        (ours.path, other.key_path),
        (ours.path, locked),
        (locked, ours.key_path),
    ):
        settings = TlsSettings(certificate=path, key=key_path)
        certificate = choose_certificate(settings, tmp_path, (), NOW)
        assert certificate is not None
        assert not certificate.is_development
        with pytest.raises(ConfigError, match="PEM"):
            server_context(certificate)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "tls").write_text("a file")
    with pytest.raises(ConfigError, match="tls"):
        made(tmp_path)


@pytest.mark.parametrize(
    "settings",
    [{"certificate": "c"}, {"key": "k"}, {"dev": True, "certificate": "c", "key": "k"}],
)
def test_half_a_choice_is_refused(settings) -> None:
    with pytest.raises(ValidationError):
        TlsSettings(**settings)


def test_handshakes_are_counted_by_how_far_they_came(tmp_path: Path) -> None:
    certificate = made(tmp_path)
    counts = Family(Counter, HANDSHAKES)
    server = server_context(certificate, counts)
    trusting = ssl.create_default_context(cafile=str(certificate.path))
    handshake(server, trusting, "localhost")
    assert [counts[name].value for name in HANDSHAKES] == [1, 1, 0]
    said = ssl.MemoryBIO()
    end = server.wrap_bio(said, ssl.MemoryBIO(), server_side=True)
    with pytest.raises(ssl.SSLWantReadError):
        end.do_handshake()
    said.write(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(ssl.SSLError):
        end.do_handshake()
    assert [counts[name].value for name in HANDSHAKES] == [2, 1, 1]
