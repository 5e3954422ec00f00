from __future__ import annotations

import threading

import pytest

from duologue.gateway.beside_loop import LARGE_BYTES, read_beside_loop


@pytest.mark.parametrize(("size", "is_beside"), [(LARGE_BYTES, False), (LARGE_BYTES + 1, True)])
async def test_a_thread_reads_what_is_large(size: int, is_beside: bool) -> None:
    read = await read_beside_loop(lambda raw: (len(raw), threading.get_ident()), bytes(size))
    assert read[0] == size
    assert (read[1] != threading.get_ident()) == is_beside


async def test_what_reading_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await read_beside_loop(lambda raw: len(raw) // 0, bytes(LARGE_BYTES + 1))
