"""What a peer offers, read from its SDP, and the plain SDP that is all a backend gets to see.

Browsers describe far more than a call needs, and anybody may send anything; so an offer is read
here, once, and written anew from what was understood. This module must not know how a connection
is made.

Source:
    RFC 8866 (SDP), RFC 8839 (ICE in SDP), RFC 8842 (DTLS in SDP), RFC 8841 (data channels in SDP).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from duologue.protocol.errors import ErrorCode, over_limit, refused, shown

MAX_OFFER_CHARS = 64 * 1024
MAX_CANDIDATES = 64
MAX_MEDIA = 8

Codec: TypeAlias = Literal["opus", "pcmu", "pcma"]
Direction: TypeAlias = Literal["sendrecv", "sendonly", "recvonly", "inactive"]

RTPMAPS: Mapping[Codec, str] = {
    "opus": "opus/48000/2",
    "pcmu": "PCMU/8000",
    "pcma": "PCMA/8000",
}
"""Codecs that we speak, best first."""

_STATIC_PAYLOADS: Mapping[int, Codec] = {0: "pcmu", 8: "pcma"}
_DIRECTIONS = ("sendrecv", "sendonly", "recvonly", "inactive")
_SETUPS = ("actpass", "active", "passive")
_MID = re.compile(r"[A-Za-z0-9_.:+-]{1,32}")
_UFRAG = re.compile(r"[A-Za-z0-9+/=_-]{4,256}")
_PWD = re.compile(r"[A-Za-z0-9+/=_-]{22,256}")
_FINGERPRINT = re.compile(r"sha-256 ([0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2}")
_CANDIDATE = re.compile(
    r"(?P<foundation>[A-Za-z0-9+/]{1,32}) (?P<component>\d{1,3}) (?P<transport>\S+)"
    r" (?P<priority>\d{1,10}) (?P<host>\S+) (?P<port>\d{1,5}) typ (?P<kind>host|srflx|prflx|relay)"
    r"( .*)?"
)


@dataclass(frozen=True, slots=True)
class AudioOffer:
    """Audio that a peer wants to exchange, in the best codec that both sides speak.

    Args:
        direction: As the peer sees it: ``recvonly`` has no microphone.
    """

    mid: str
    codec: Codec
    payload_type: int
    direction: Direction


@dataclass(frozen=True, slots=True)
class Offer:
    """A call that a peer offers.

    Args:
        data_mid: Name of its data channels' section; ``None``: it has none.
    """

    ufrag: str
    pwd: str
    fingerprint: str
    setup: str
    candidates: tuple[str, ...]
    mids: tuple[str, ...]
    audio: AudioOffer | None
    data_mid: str | None
    sctp_port: int = 5000
    max_message_bytes: int = 65_536

    @property
    def identity(self) -> tuple[str, str]:
        """The same for an offer that is sent again, and for no other."""
        return self.ufrag, self.fingerprint

    def sdp(self) -> str:
        """Return the offer in plain SDP."""
        lines = ["v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0"]
        lines.append(f"a=group:BUNDLE {' '.join(self.mids)}")
        for mid in self.mids:
            lines += self._audio_lines() if mid != self.data_mid else self._data_lines()
            lines += [
                f"a=mid:{mid}",
                f"a=ice-ufrag:{self.ufrag}",
                f"a=ice-pwd:{self.pwd}",
                f"a=fingerprint:{self.fingerprint}",
                f"a=setup:{self.setup}",
                *(f"a=candidate:{candidate}" for candidate in self.candidates),
            ]
        return "".join(f"{line}\r\n" for line in lines)

    def _audio_lines(self) -> list[str]:
        audio = self.audio
        assert audio is not None
        return [
            f"m=audio 9 UDP/TLS/RTP/SAVPF {audio.payload_type}",
            "c=IN IP4 0.0.0.0",
            f"a={audio.direction}",
            "a=rtcp-mux",
            f"a=rtpmap:{audio.payload_type} {RTPMAPS[audio.codec]}",
        ]

    def _data_lines(self) -> list[str]:
        return [
            "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
            "c=IN IP4 0.0.0.0",
            f"a=sctp-port:{self.sctp_port}",
            f"a=max-message-size:{self.max_message_bytes}",
        ]


@dataclass(slots=True)
class _Section:
    """The session's part of an SDP, or one of its media."""

    media: str = ""
    attributes: dict[str, list[str]] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.media.partition(" ")[0]

    def first(self, name: str) -> str | None:
        values = self.attributes.get(name)
        return values[0] if values else None

    def all(self, name: str) -> list[str]:
        return self.attributes.get(name, [])


def read_offer(sdp: str) -> Offer:
    """Read an offer.

    Raises:
        ClientError: It is no SDP, or offers nothing that we can take; ``param`` is ``sdp``.
    """
    if len(sdp) > MAX_OFFER_CHARS:
        raise over_limit("the offer", len(sdp), MAX_OFFER_CHARS, "sdp", "characters")
    session, media = _sections(sdp)
    audio, data = _chosen(media)
    mids = tuple(_mid(section) for section in media)
    if len(set(mids)) != len(mids):
        raise _wrong(f"two sections are called {shown(mids[0])}")
    if len(mids) > 1 and not _bundled(session, mids):
        raise _wrong("audio and data must share one transport: offer them in one BUNDLE group")
    transport = [*media, session]
    return Offer(
        ufrag=_needed(transport, "ice-ufrag", _UFRAG),
        pwd=_needed(transport, "ice-pwd", _PWD),
        fingerprint=_fingerprint(transport),
        setup=_setup(transport),
        candidates=tuple(_candidates(media)),
        mids=mids,
        audio=None if audio is None else _audio(audio),
        data_mid=None if data is None else _mid(data),
        sctp_port=_number(data, "sctp-port", 5000, 1, 65_535),
        max_message_bytes=_max_message(data),
    )


def _sections(sdp: str) -> tuple[_Section, list[_Section]]:
    lines = [line.rstrip("\r") for line in sdp.strip().split("\n")]
    if lines[0] != "v=0":
        raise _wrong("it does not begin with v=0: send the offer's SDP, as the browser made it")
    session = section = _Section()
    media: list[_Section] = []
    for line in lines:
        kind, _, value = line.partition("=")
        if kind == "m":
            section = _Section(value)
            media.append(section)
            if len(media) > MAX_MEDIA:
                raise over_limit("the offer's media", len(media), MAX_MEDIA, "sdp")
        elif kind == "a":
            name, _, rest = value.partition(":")
            section.attributes.setdefault(name, []).append(rest)
    return session, media


def _chosen(media: list[_Section]) -> tuple[_Section | None, _Section | None]:
    kinds = [section.kind for section in media]
    unknown = sorted(set(kinds) - {"audio", "application"})
    if unknown:
        raise _wrong(f"it offers {shown(unknown[0])}; a call takes one audio and data channels")
    for kind in ("audio", "application"):
        if kinds.count(kind) > 1:
            raise _wrong(f"it offers {kinds.count(kind)} of {kind!r}, and a call has one")
    if not media:
        raise _wrong("it offers neither audio nor a data channel")
    by_kind = {section.kind: section for section in media}
    return by_kind.get("audio"), by_kind.get("application")


def _mid(section: _Section) -> str:
    mid = section.first("mid")
    if mid is None or not _MID.fullmatch(mid):
        raise _wrong(f"the section {section.kind!r} has no usable a=mid")
    return mid


def _bundled(session: _Section, mids: tuple[str, ...]) -> bool:
    groups = [group.split() for group in session.all("group")]
    return any(group[:1] == ["BUNDLE"] and set(mids) <= set(group) for group in groups)


def _audio(section: _Section) -> AudioOffer:
    offered: dict[Codec, int] = {}
    payloads = section.media.split()[3:]
    rtpmaps = dict(line.split(" ", 1) for line in section.all("rtpmap") if " " in line)
    for payload in payloads:
        if not payload.isdecimal() or not payload.isascii() or int(payload) > 127:
            continue
        codec = _STATIC_PAYLOADS.get(int(payload))
        for name, rtpmap in RTPMAPS.items():
            if rtpmaps.get(payload, "").strip().lower() in (rtpmap.lower(), f"{rtpmap}/1".lower()):
                codec = name
        if codec is not None:
            offered.setdefault(codec, int(payload))
    best = next((codec for codec in RTPMAPS if codec in offered), None)
    if best is None:
        raise _wrong(
            f"no audio codec in common; we speak {', '.join(RTPMAPS.values())}",
            ErrorCode.UNSUPPORTED,
        )
    direction = next((name for name in _DIRECTIONS if section.first(name) is not None), "sendrecv")
    return AudioOffer(_mid(section), best, offered[best], direction)  # type: ignore[arg-type]


def _needed(sections: list[_Section], name: str, form: re.Pattern[str]) -> str:
    value = next((v for s in sections if (v := s.first(name)) is not None), None)
    if value is None:
        raise _wrong(f"a={name} is missing")
    if not form.fullmatch(value):
        raise _wrong(f"a={name} is malformed")
    return value


def _fingerprint(sections: list[_Section]) -> str:
    given = [value.strip() for section in sections for value in section.all("fingerprint")]
    for value in given:
        algorithm, _, digits = value.partition(" ")
        value = f"{algorithm.lower()} {digits.strip().upper()}"
        if _FINGERPRINT.fullmatch(value):
            return value
    if given:
        raise _wrong("no a=fingerprint is a SHA-256 one")
    raise _wrong("a=fingerprint is missing")


def _setup(sections: list[_Section]) -> str:
    setup = next((v for s in sections if (v := s.first("setup")) is not None), "actpass")
    if setup not in _SETUPS:
        raise _wrong(f"a=setup is {shown(setup)}, and an offer's is actpass")
    return setup


def _candidates(media: list[_Section]) -> Iterator[str]:
    """Where the peer can be reached, over UDP.

    Names (``.local``) are left out: looking them up takes long and mostly fails, and a peer that
    can reach us shows where it is by doing so.
    """
    seen: set[str] = set()
    for section in media:
        for line in section.all("candidate"):
            match = _CANDIDATE.fullmatch(line)
            if match is None or match["transport"].lower() != "udp" or match["component"] != "1":
                continue
            if not _is_address(match["host"]) or not 0 < int(match["port"]) < 65_536:
                continue
            candidate = (
                f"{match['foundation']} 1 udp {min(int(match['priority']), 2**31 - 1)} "
                f"{match['host']} {int(match['port'])} typ {match['kind']}"
            )
            if match["kind"] != "host":
                candidate += " raddr 0.0.0.0 rport 9"
            if candidate not in seen and len(seen) < MAX_CANDIDATES:
                seen.add(candidate)
                yield candidate


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host


def _number(section: _Section | None, name: str, absent: int, low: int, high: int) -> int:
    text = None if section is None else section.first(name)
    if text is None:
        return absent
    if not (text.isascii() and text.isdecimal() and len(text) <= 18 and low <= int(text) <= high):
        raise _wrong(f"a={name} is {shown(text)}, and must be {low} to {high}")
    return int(text)


def _max_message(data: _Section | None) -> int:
    """Return how long a message the peer takes. 0 means any length (RFC 8841, section 6.1)."""
    return _number(data, "max-message-size", 65_536, 0, 10**17) or 1 << 20


def _wrong(what: str, code: ErrorCode = ErrorCode.INVALID_VALUE) -> Exception:
    return refused(f"the offer cannot be taken: {what}", "sdp", code)
