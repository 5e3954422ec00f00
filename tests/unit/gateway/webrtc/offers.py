"""Offers as browsers and others make them."""

from __future__ import annotations

FINGERPRINT = "sha-256 " + ":".join(["AB"] * 32)

CHROMIUM = f"""v=0
o=- 8403615332048243445 2 IN IP4 127.0.0.1
s=-
t=0 0
a=group:BUNDLE 0 1
a=extmap-allow-mixed
a=msid-semantic: WMS 3f2b
m=audio 53001 UDP/TLS/RTP/SAVPF 111 63 9 0 8 13 110 126
c=IN IP4 192.0.2.7
a=rtcp:9 IN IP4 0.0.0.0
a=candidate:2884829414 1 udp 2122260223 192.0.2.7 53001 typ host generation 0 network-id 1
a=candidate:1111 1 udp 2122194687 5b2c6f0e-1111-4222-8333-944444444444.local 53002 typ host
a=candidate:3333 1 tcp 1518280447 192.0.2.7 9 typ host tcptype active generation 0
a=candidate:4444 1 udp 1686052607 198.51.100.9 61000 typ srflx raddr 192.0.2.7 rport 53001
a=candidate:2884829414 2 udp 2122260222 192.0.2.7 53003 typ host
a=ice-ufrag:yDKz
a=ice-pwd:0e3n2sFq3fJtPV1nrXhhH9cR
a=ice-options:trickle
a=fingerprint:{FINGERPRINT}
a=setup:actpass
a=mid:0
a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level
a=sendrecv
a=msid:3f2b 7d01
a=rtcp-mux
a=rtcp-rsize
a=rtpmap:111 opus/48000/2
a=rtcp-fb:111 transport-cc
a=fmtp:111 minptime=10;useinbandfec=1
a=rtpmap:63 red/48000/2
a=rtpmap:9 G722/8000
a=rtpmap:0 PCMU/8000
a=rtpmap:8 PCMA/8000
a=rtpmap:13 CN/8000
a=rtpmap:110 telephone-event/48000
a=ssrc:1234 cname:abcd
m=application 53001 UDP/DTLS/SCTP webrtc-datachannel
c=IN IP4 192.0.2.7
a=ice-ufrag:yDKz
a=ice-pwd:0e3n2sFq3fJtPV1nrXhhH9cR
a=fingerprint:{FINGERPRINT}
a=setup:actpass
a=mid:1
a=sctp-port:5000
a=max-message-size:262144
""".replace("\n", "\r\n")


def without(*beginnings: str) -> str:
    """The offer without lines that begin so."""
    return "\r\n".join(line for line in CHROMIUM.split("\r\n") if not line.startswith(beginnings))


def only_audio() -> str:
    """The offer without its data channel."""
    return CHROMIUM[: CHROMIUM.index("m=application")].replace("BUNDLE 0 1", "BUNDLE 0")


def only_data() -> str:
    """The offer without its audio."""
    start, end = CHROMIUM.index("m=audio"), CHROMIUM.index("m=application")
    return (CHROMIUM[:start] + CHROMIUM[end:]).replace("BUNDLE 0 1", "BUNDLE 1")
