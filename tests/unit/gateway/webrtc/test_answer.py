from __future__ import annotations

from duologue.gateway.webrtc.answer import seen_from_outside

ANSWER = (
    "v=0\r\n"
    "c=IN IP4 10.0.0.7\r\n"
    "a=candidate:1 1 UDP 2114977791 10.0.0.7 53785 typ host\r\n"
    "a=candidate:2 1 UDP 2114977791 fd00::7 53785 typ host\r\n"
    "a=candidate:3 1 UDP 100 198.51.100.9 53786 typ srflx raddr 10.0.0.7 rport 53785\r\n"
    "a=end-of-candidates\r\n"
)


def test_an_answer_stays_as_it_is_where_nothing_stands_between() -> None:
    assert seen_from_outside(ANSWER, None) == ANSWER


def test_our_own_addresses_are_shown_as_the_public_one_with_their_ports() -> None:
    assert seen_from_outside(ANSWER, "203.0.113.5") == (
        "v=0\r\n"
        "c=IN IP4 203.0.113.5\r\n"
        "a=candidate:1 1 UDP 2114977791 203.0.113.5 53785 typ host\r\n"
        "a=candidate:3 1 UDP 100 198.51.100.9 53786 typ srflx raddr 10.0.0.7 rport 53785\r\n"
        "a=end-of-candidates\r\n"
    )


def test_the_other_family_works_the_same() -> None:
    assert "2001:db8::1 53785 typ host" in seen_from_outside(ANSWER, "2001:db8::1")
