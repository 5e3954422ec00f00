"""C52, and C51 at random, over real sockets; ``make faults`` lives a thousand other lives."""

from __future__ import annotations

from tests.faults.random_lives import LIVES, live_all


async def test_c52_random_lives_over_sockets_leave_nothing_behind() -> None:
    await live_all(range(LIVES))
