from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import ClientError
from duologue.gateway.webrtc.offer import MAX_OFFER_CHARS, AudioOffer, Offer, read_offer
from tests.unit.gateway.webrtc.offers import (
    CHROMIUM,
    FINGERPRINT,
    only_audio,
    only_data,
    without,
)


def refusal(sdp: str) -> ClientError:
    with pytest.raises(ClientError) as caught:
        read_offer(sdp)
    assert caught.value.param == "sdp"
    return caught.value


def test_what_a_browser_offers_is_understood() -> None:
    assert read_offer(CHROMIUM) == Offer(
        ufrag="yDKz",
        pwd="0e3n2sFq3fJtPV1nrXhhH9cR",
        fingerprint=FINGERPRINT,
        setup="actpass",
        candidates=(
            "2884829414 1 udp 2122260223 192.0.2.7 53001 typ host",
            "4444 1 udp 1686052607 198.51.100.9 61000 typ srflx raddr 0.0.0.0 rport 9",
        ),
        mids=("0", "1"),
        audio=AudioOffer("0", "opus", 111, "sendrecv"),
        data_mid="1",
        sctp_port=5000,
        max_message_bytes=262_144,
    )


def test_what_is_written_for_the_library_reads_the_same() -> None:
    offer = read_offer(CHROMIUM)
    assert read_offer(offer.sdp()) == offer
    assert "rtpmap:63" not in offer.sdp()
    assert ".local" not in offer.sdp()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_both_ends_of_lines_will_do(newline: str) -> None:
    assert read_offer(CHROMIUM.replace("\r\n", newline)) == read_offer(CHROMIUM)


def test_an_offer_may_have_audio_alone_or_data_alone() -> None:
    audio, data = read_offer(only_audio()), read_offer(only_data())
    assert (audio.mids, audio.data_mid) == (("0",), None)
    assert (data.mids, data.audio) == (("1",), None)
    for offer in (audio, data):
        assert read_offer(offer.sdp()) == offer


@pytest.mark.parametrize(
    ("payloads", "codec"),
    [("0", "pcmu"), ("8 0", "pcmu"), ("8", "pcma"), ("9 8 13", "pcma"), ("0 111", "opus")],
)
def test_c71_the_best_codec_that_both_speak_is_taken(payloads: str, codec: str) -> None:
    sdp = CHROMIUM.replace("SAVPF 111 63 9 0 8 13 110 126", f"SAVPF {payloads}")
    audio = read_offer(sdp).audio
    assert audio is not None
    assert audio.codec == codec


def test_a_static_payload_type_needs_no_map() -> None:
    sdp = without("a=rtpmap").replace("SAVPF 111 63 9 0 8 13 110 126", "SAVPF 8")
    assert read_offer(sdp).audio == AudioOffer("0", "pcma", 8, "sendrecv")


@pytest.mark.parametrize("direction", ["sendonly", "recvonly", "inactive"])
def test_the_direction_is_the_peers(direction: str) -> None:
    audio = read_offer(CHROMIUM.replace("a=sendrecv", f"a={direction}")).audio
    assert audio is not None
    assert audio.direction == direction


def test_attributes_of_the_whole_session_count_for_each_part() -> None:
    moved = without("a=ice-ufrag", "a=ice-pwd", "a=fingerprint", "a=setup").replace(
        "a=group",
        f"a=ice-ufrag:yDKz\r\na=ice-pwd:0e3n2sFq3fJtPV1nrXhhH9cR\r\n"
        f"a=fingerprint:{FINGERPRINT.lower()}\r\na=setup:actpass\r\na=group",
    )
    assert read_offer(moved) == read_offer(CHROMIUM)


def test_a_message_of_any_length_is_bounded_all_the_same() -> None:
    offer = read_offer(CHROMIUM.replace("a=max-message-size:262144", "a=max-message-size:0"))
    assert offer.max_message_bytes == 1 << 20


def test_an_offer_that_is_sent_again_is_known() -> None:
    changed = CHROMIUM.replace("192.0.2.7", "192.0.2.8")
    assert read_offer(changed).identity == read_offer(CHROMIUM).identity
    assert read_offer(CHROMIUM.replace("yDKz", "zDKy")).identity != read_offer(CHROMIUM).identity


@pytest.mark.parametrize(
    ("sdp", "words"),
    [
        ("", "v=0"),
        ("hello", "v=0"),
        ('{"sdp":"v=0"}', "v=0"),
        ("v=0\r\n", "neither audio nor a data channel"),
        (without("a=ice-ufrag"), "a=ice-ufrag is missing"),
        (without("a=ice-pwd"), "a=ice-pwd is missing"),
        (CHROMIUM.replace("0e3n2sFq3fJtPV1nrXhhH9cR", "short"), "a=ice-pwd is malformed"),
        (without("a=fingerprint"), "a=fingerprint is missing"),
        (CHROMIUM.replace("sha-256", "sha-1"), "SHA-256"),
        (CHROMIUM.replace("a=setup:actpass", "a=setup:maybe"), "a=setup"),
        (without("a=mid"), "a=mid"),
        (CHROMIUM.replace("a=mid:1", "a=mid:0"), "two sections"),
        (without("a=group"), "BUNDLE"),
        (CHROMIUM.replace("BUNDLE 0 1", "BUNDLE 0"), "BUNDLE"),
        (CHROMIUM.replace("m=application", "m=video"), "'video'"),
        (CHROMIUM + CHROMIUM[CHROMIUM.index("m=app") :].replace("mid:1", "mid:2"), "2 of"),
        (CHROMIUM.replace("a=sctp-port:5000", "a=sctp-port:70000"), "a=sctp-port"),
        (CHROMIUM.replace("a=sctp-port:5000", "a=sctp-port:\u0665"), "a=sctp-port"),
        (CHROMIUM.replace("SAVPF 111 63 9 0 8 13 110 126", "SAVPF 9 63"), "codec"),
        (CHROMIUM.replace("SAVPF 111 63 9 0 8 13 110 126", "SAVPF"), "codec"),
    ],
)
def test_c71_what_cannot_be_taken_is_refused_with_its_reason(sdp: str, words: str) -> None:
    assert words in refusal(sdp).message


def test_a_long_offer_is_refused_before_it_is_read() -> None:
    error = refusal("v=0\r\n" + "a" * MAX_OFFER_CHARS)
    assert error.code == "limit_exceeded"
    assert str(MAX_OFFER_CHARS) in error.message


def test_many_candidates_and_many_sections_are_bounded() -> None:
    line = "a=candidate:1 1 udp 1 192.0.2.7 {} typ host\r\n"
    many = "".join(line.format(port) for port in range(1, 500))
    offer = read_offer(CHROMIUM.replace("a=ice-ufrag", many + "a=ice-ufrag", 1))
    assert len(offer.candidates) == 64
    assert "limit is 8" in refusal("v=0\r\n" + "m=audio 9 x 0\r\n" * 100).message


@given(seed=st.integers(0, 10_000))
def test_a_mutated_offer_is_understood_or_refused(seed: int) -> None:
    chance = random.Random(seed)
    lines = CHROMIUM.split("\r\n")
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(lines))
        match chance.randrange(4):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, lines[chance.randrange(len(lines))])
            case 2:
                cut = chance.randint(0, len(lines[at]))
                lines[at] = lines[at][:cut] + chr(chance.randrange(1, 2000)) + lines[at][cut:]
            case _:
                lines[at] = lines[at][: chance.randint(0, len(lines[at]))]
        if not lines:
            return
    try:
        offer = read_offer("\r\n".join(lines))
    except ClientError:
        return
    assert read_offer(offer.sdp()) == offer
