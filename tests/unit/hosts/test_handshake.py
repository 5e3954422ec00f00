from __future__ import annotations

import random

import pytest

from duologue.core.errors import AuthError, DuologueError, ProtocolError
from duologue.hosts.handshake import MAX_NAME_CHARS, EdgeHandshake, HostHandshake
from duologue.hosts.messages import Beat, Challenge, Goodbye, Hello, LinkMessage, Proof, Welcome

SECRET = b"a secret of two machines"


def ends(
    edge_secret: bytes = SECRET, host_secret: bytes = SECRET, *, edge: str = "edge-0"
) -> tuple[EdgeHandshake, HostHandshake]:
    source = random.Random(1)
    return (
        EdgeHandshake(edge, "1.0", edge_secret, source.randbytes),
        HostHandshake("host", "1.0", host_secret, source.randbytes),
    )


def shake(edge: EdgeHandshake, host: HostHandshake) -> None:
    to_host, to_edge = edge.begin(), host.begin()
    while to_host or to_edge:
        to_edge += [reply for message in to_host for reply in host.take(message)]
        to_host = [reply for message in to_edge for reply in edge.take(message)]
        to_edge = []


@pytest.mark.parametrize("secret", [SECRET, b""])
def test_two_that_know_the_same_secret_know_each_other(secret: bytes) -> None:
    edge, host = ends(secret, secret)
    shake(edge, host)
    assert (edge.peer, host.peer) == ("host", "edge-0")


def test_who_does_not_know_it_is_refused_by_the_edge_first() -> None:
    edge, host = ends(b"another secret that is guessed")
    with pytest.raises(AuthError):
        shake(edge, host)
    assert edge.peer is host.peer is None


def test_an_edge_that_only_guesses_is_refused_by_the_host() -> None:
    _, host = ends()
    host.take(Hello("1.0", "edge-0", b"c" * 32))
    with pytest.raises(AuthError):
        host.take(Proof(b"p" * 32))
    assert host.peer is None


def test_a_proof_that_was_overheard_opens_nothing_again() -> None:
    edge, host = ends()
    (hello,) = edge.begin()
    (challenge,) = host.take(hello)
    (proof,) = edge.take(challenge)
    other = HostHandshake("host", "1.0", SECRET, random.Random(2).randbytes)
    other.take(hello)
    with pytest.raises(AuthError):
        other.take(proof)


def test_both_must_be_of_one_release() -> None:
    _, host = ends()
    with pytest.raises(ProtocolError, match=r"0\.9.*1\.0"):
        host.take(Hello("0.9", "edge-0", b""))


@pytest.mark.parametrize("name", ["", "e" * (MAX_NAME_CHARS + 1)])
def test_a_name_is_a_label_and_has_a_limit(name: str) -> None:
    edge, host = ends(edge=name)
    with pytest.raises(ProtocolError):
        shake(edge, host)


@pytest.mark.parametrize("message", [Beat(), Welcome("host"), Proof(b"")])
def test_an_edge_hears_nothing_from_one_that_has_proved_nothing(message: LinkMessage) -> None:
    edge, _ = ends()
    with pytest.raises(ProtocolError):
        edge.take(message)


@pytest.mark.parametrize("message", [Beat(), Proof(b""), Challenge(b"", b"")])
def test_nor_does_a_host(message: LinkMessage) -> None:
    _, host = ends()
    with pytest.raises(ProtocolError):
        host.take(message)


def test_a_host_may_say_why_not() -> None:
    edge, _ = ends()
    with pytest.raises(DuologueError, match="full"):
        edge.take(Goodbye("full"))
