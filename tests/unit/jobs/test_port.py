from __future__ import annotations

from collections.abc import Sequence

import pytest

from duologue.core.errors import ProtocolError
from duologue.jobs.port import position_of, read_all
from tests.unit.jobs.desks import record


class Pieces:
    """A result that comes in certain pieces; ``None``: it is gone."""

    size_bytes = 6

    def __init__(self, pieces: Sequence[bytes | None]) -> None:
        self.pieces = list(pieces)
        self.closed = False

    async def read(self, _most: int) -> bytes:
        piece = self.pieces.pop(0)
        if piece is None:
            raise ProtocolError("gone")
        return piece

    async def close(self) -> None:
        self.closed = True


async def test_a_whole_result_is_read_and_let_go_of_whatever_happens() -> None:
    whole = Pieces([b"abc", b"de", b"f", b""])
    assert await read_all(whole, 3) == b"abcdef"
    broken = Pieces([b"abc", None])
    with pytest.raises(ProtocolError):
        await read_all(broken, 3)
    assert whole.closed
    assert broken.closed


def test_jobs_stand_in_the_order_in_which_they_were_asked_for() -> None:
    jobs = [record(3), record(1), record(2)]
    assert [each.id for each in sorted(jobs, key=position_of)] == ["job_1", "job_2", "job_3"]
