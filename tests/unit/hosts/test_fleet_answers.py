"""Answers at several hosts: every gateway asks the same one."""

from __future__ import annotations

import pytest

from duologue.core.errors import CapacityError
from duologue.hosts.answers import AnswersPort
from duologue.hosts.faults import host_lost
from duologue.hosts.fleet_answers import FleetAnswers
from tests.unit.hosts.test_answers import answers
from tests.unit.hosts.test_served_answers import FAR


class Lost:
    """A host that can no longer be reached."""

    def __init__(self, behind: AnswersPort) -> None:
        self.begin = behind.begin
        self.spoken = behind.spoken
        self.failed = behind.failed

    async def done(self, key: str, answer: bytes) -> None:
        raise host_lost()

    async def keep_spoken(self, answer_id: str, text: str, expires_at: int) -> None:
        raise host_lost()


async def test_gateways_agree_whichever_way_they_count_the_hosts() -> None:
    hosts: list[tuple[str, AnswersPort]] = [("a", answers()), ("b", answers()), ("c", answers())]
    one, two = FleetAnswers(lambda: hosts), FleetAnswers(lambda: hosts[::-1])
    for number in range(8):
        assert await one.begin(f"k{number}", b"1") is None
        await one.done(f"k{number}", b"answer")
        assert await two.begin(f"k{number}", b"1") == b"answer"
        await one.keep_spoken(f"audio_{number}", "hello", FAR)
        assert await two.spoken(f"audio_{number}") == "hello"
    assert await one.begin("x", b"1") is None
    one.failed("x")
    assert await two.begin("x", b"1") is None


async def test_an_answer_that_was_made_is_given_though_nobody_can_keep_it() -> None:
    lost = FleetAnswers(lambda: [("a", Lost(answers()))])
    assert await lost.begin("k", b"1") is None
    await lost.done("k", b"answer")
    await lost.keep_spoken("audio_1", "hello", FAR)
    assert await lost.spoken("audio_1") is None
    nobody = FleetAnswers(list)
    await nobody.keep_spoken("audio_1", "hello", FAR)
    with pytest.raises(CapacityError):
        await nobody.begin("k", b"1")
