"""The form of a connection: what a client asks for at the handshake, before it has said a word.

Clients ask in four places, the path, the query, a header and the subprotocols, and what they get is
fixed for the life of the connection, so that two dialects never mix. This module must not know who
may come in, nor what is said.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs

from duologue.core.errors import ProtocolError
from duologue.protocol.dialect import Dialect, Encoding, Family, OnRequest
from duologue.protocol.dialects import DIALECTS
from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.session_config import SessionKind

PLAIN_PROTOCOL = "realtime"
MSGPACK_PROTOCOL = "realtime.msgpack"
BETA_PROTOCOL = "openai-beta.realtime-v1"
"""A switch that some clients offer; it is never selected."""

_ENCODINGS: Mapping[str, Encoding] = {PLAIN_PROTOCOL: "json", MSGPACK_PROTOCOL: "msgpack"}
"""The subprotocols that are ever selected: others carry keys and names of programs."""

_BETA_HEADER = "realtime=v1"
_DUPLEX_PATH = "/v1/duplex"
"""Without ``autostart=0`` the plain dialect is spoken here, too."""

_BETA_PATH = "/openai/realtime"
"""Azure's address of the beta, with the model as ``deployment``; that of GA has a version in it."""

VIDEO_CHAT_PATH = "/v1/video/chat/stream"
"""For calls with a camera: always the duplex dialect, described by its first message."""

PATHS = (
    "/v1/realtime",
    "/realtime",
    _DUPLEX_PATH,
    "/openai/v1/realtime",
    _BETA_PATH,
    VIDEO_CHAT_PATH,
)
"""Where clients connect to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionForm:
    """What a connection is.

    Args:
        dialect: How messages are written; it also decides which events the client gets.
        protocol: The subprotocol to select, if one was offered that we speak.
        model: The name that the client asks for.
        kind: What the session is for, until the client says otherwise.
        autostart: The session is created at once; else by the client's first ``session.update``.
        call_id: The WebRTC call that the client wants to look on at, instead of holding one.
        resumes: The connection is for ``session.resume`` alone.
        queues: The client would rather wait for a place than be refused.
        resumable: The client wants a token with which it may come back to its session.
        session_id: The session to come back to, with ``resume_token``.
    """

    dialect: Dialect
    protocol: str | None
    model: str | None
    kind: SessionKind
    autostart: bool
    call_id: str | None = None
    resumes: bool = False
    queues: bool = False
    resumable: bool = False
    session_id: str | None = None
    resume_token: str | None = None


def connection_form(
    path: str,
    query_string: str,
    headers: Mapping[str, str],
    offered: Sequence[str],
    allowed: Collection[OnRequest],
) -> ConnectionForm:
    """Read a handshake.

    Args:
        query_string: One stock client appends ``?model=`` to a URL that may hold a query already,
            so a question mark separates like an ampersand.
        offered: Subprotocols, in the client's order.
        allowed: Families that may be asked for besides the plain one.

    Raises:
        ProtocolError: The dialect that is asked for is not spoken here.
    """
    parsed = parse_qs(query_string.replace("?", "&"))
    query = {name: values[0] for name, values in parsed.items()}
    protocol = next((name for name in offered if name in _ENCODINGS), None)
    encoding = _ENCODINGS[protocol or PLAIN_PROTOCOL]
    # Clients that know nothing of the extensions use their address too, so that is not enough. Who
    # lets its first message describe the session knows them, and gets their dialect.
    with_camera = path == VIDEO_CHAT_PATH
    at_duplex = with_camera or path == _DUPLEX_PATH or _is_on(query, "duplex")
    resumes = at_duplex and _is_on(query, "resume")
    described_first = resumes or with_camera or (at_duplex and query.get("autostart") == "0")
    family = _family(
        wants_beta=path == _BETA_PATH or _wants_beta(headers, offered),
        wants_duplex=described_first,
    )
    dialect = DIALECTS.get((family, encoding))
    if dialect is None or (family != "realtime" and family not in allowed):
        raise _not_spoken(family, encoding)
    return ConnectionForm(
        dialect=dialect,
        protocol=protocol,
        model=query.get("model") or query.get("deployment"),
        kind="transcription" if query.get("intent") == "transcription" else "realtime",
        autostart=not described_first,
        call_id=query.get("call_id"),
        resumes=resumes,
        queues=_is_on(query, "queue"),
        resumable=_is_on(query, "resumable"),
        session_id=query.get("session_id"),
        resume_token=query.get("resume_token"),
    )


def _is_on(query: Mapping[str, str], name: str) -> bool:
    return query.get(name) in ("1", "true")


def _family(*, wants_beta: bool, wants_duplex: bool) -> Family:
    if wants_beta and wants_duplex:
        raise refused(
            "the beta dialect has no duplex extensions: leave out the one or the other",
            None,
            ErrorCode.UNSUPPORTED,
        )
    if wants_beta:
        return "beta"
    return "duplex" if wants_duplex else "realtime"


def _wants_beta(headers: Mapping[str, str], offered: Sequence[str]) -> bool:
    named = headers.get("OpenAI-Beta", "").replace(" ", "").split(",")
    return _BETA_HEADER in named or BETA_PROTOCOL in offered


_HOW_TO_AVOID: Mapping[Family, str] = {
    "realtime": f"offer the subprotocol {PLAIN_PROTOCOL!r}",
    "beta": f"leave out the header OpenAI-Beta and the subprotocol {BETA_PROTOCOL!r}, or move from "
    f"{_BETA_PATH} to /openai/v1/realtime",
    "duplex": "leave out autostart=0",
}


def _not_spoken(family: Family, encoding: Encoding) -> ProtocolError:
    return refused(
        f"the {family} dialect in {encoding} is not spoken here: {_HOW_TO_AVOID[family]}, and the "
        "plain Realtime dialect is spoken",
        None,
        ErrorCode.UNSUPPORTED,
    )
