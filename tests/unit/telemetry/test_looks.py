"""Looks at what is published when figures are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from duologue.telemetry.looks import take_looks


async def test_looks_are_taken_in_order_and_others_have_a_turn_between_two_pieces() -> None:
    seen: list[str] = []

    def short() -> None:
        seen.append("short")

    def long() -> Iterator[None]:
        for piece in ("first", "second"):
            seen.append(piece)
            yield

    asyncio.get_running_loop().call_soon(seen.append, "somebody else")
    await take_looks((short, long, short))
    assert seen == ["short", "first", "somebody else", "second", "short"]
