"""Who is at the other end of a link: both ends prove that they know the same secret.

Each answers a random challenge of the other, so nothing that was heard on the way opens a link
again. On a socket that only this user may open, the secret may be empty. Pure: messages in,
messages out. This module must not know sockets.
"""

from __future__ import annotations

from collections.abc import Callable

from duologue.core.errors import AuthError, DuologueError, ProtocolError
from duologue.core.proof import CHALLENGE_BYTES, is_proved, prove
from duologue.hosts.messages import Challenge, Goodbye, Hello, LinkMessage, Proof, Welcome

MAX_HANDSHAKE_BYTES = 4096
"""From somebody who has proved nothing yet."""

MAX_NAME_CHARS = 64

_OF_HOST, _OF_EDGE = b"duologue link, host", b"duologue link, edge"

RandomBytes = Callable[[int], bytes]


class EdgeHandshake:
    """The end that connects.

    Args:
        edge: Its name.
        random: Makes challenges that nobody can guess.
    """

    def __init__(self, edge: str, version: str, secret: bytes, random: RandomBytes) -> None:
        self.peer: str | None = None
        """The host's name, once it is sure who it is."""

        self._secret = secret
        self._challenge = random(CHALLENGE_BYTES)
        self._hello = Hello(version, edge, self._challenge)
        self._proved = False

    def begin(self) -> list[LinkMessage]:
        """Return what to say first."""
        return [self._hello]

    def take(self, message: LinkMessage) -> list[LinkMessage]:
        """Take a message; returns what to say.

        Raises:
            DuologueError: The other end is no host of ours, or wants nothing to do with us.
        """
        match message:
            case Challenge(proof=proof, challenge=challenge) if not self._proved:
                if not is_proved(proof, self._secret, _OF_HOST, self._challenge, challenge):
                    raise wrong_secret()
                self._proved = True
                return [Proof(prove(self._secret, _OF_EDGE, challenge, self._challenge))]
            case Welcome(host=host) if self._proved:
                self.peer = host
                return []
            case Goodbye(reason=reason):
                raise DuologueError(f"the session host refused the link: {reason}")
            case _:
                raise ProtocolError("the other end of the link does not speak as a session host")


class HostHandshake:
    """The end that listens."""

    def __init__(self, host: str, version: str, secret: bytes, random: RandomBytes) -> None:
        self.peer: str | None = None
        """The edge's name, once it is sure who it is."""

        self._host = host
        self._version = version
        self._secret = secret
        self._challenge = random(CHALLENGE_BYTES)
        self._hello: Hello | None = None

    def begin(self) -> list[LinkMessage]:
        """Say nothing first."""
        return []

    def take(self, message: LinkMessage) -> list[LinkMessage]:
        """Take a message; returns what to say.

        Raises:
            DuologueError: The other end is no edge of ours.
        """
        match message:
            case Hello(version=version, edge=edge) if self._hello is None:
                if version != self._version:
                    raise ProtocolError(
                        f"the edge is Duologue {version[:MAX_NAME_CHARS]}, this host is "
                        f"{self._version}: a link needs the same on both ends"
                    )
                if not 0 < len(edge) <= MAX_NAME_CHARS:
                    raise ProtocolError(f"an edge's name has 1 to {MAX_NAME_CHARS} characters")
                self._hello = message
                proof = prove(self._secret, _OF_HOST, message.challenge, self._challenge)
                return [Challenge(proof, self._challenge)]
            case Proof(proof=proof) if self._hello is not None:
                hello = self._hello
                if not is_proved(proof, self._secret, _OF_EDGE, self._challenge, hello.challenge):
                    raise wrong_secret()
                self.peer = hello.edge
                return [Welcome(self._host)]
            case _:
                raise ProtocolError("the other end of the link does not speak as an edge")


def wrong_secret() -> AuthError:
    """Return the refusal of somebody who does not know the secret."""
    return AuthError("the other end of the link does not know hosts.link_secret")
