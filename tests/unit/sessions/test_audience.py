from __future__ import annotations

from duologue.sessions.audience import Audience


def test_a_client_that_takes_nothing_is_no_audience_until_half_has_gone() -> None:
    audience = Audience(480)
    assert audience.watched
    looks = [audience.look(away=False, waiting_ms=ms) for ms in (480, 481, 560, 300, 240, 480)]
    assert looks == [False, True, False, False, True, False]
    assert audience.present


def test_a_lost_connection_is_none_either() -> None:
    audience = Audience(480)
    assert audience.look(away=True, waiting_ms=0)
    assert not audience.present
    assert not audience.look(away=True, waiting_ms=0)
    assert audience.look(away=False, waiting_ms=0)


def test_mostly_nobody_asks() -> None:
    assert not Audience(None).watched
