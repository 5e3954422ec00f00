"""What a gateway may ask for at a time; the rest is tested with the asking end."""

from __future__ import annotations

from pathlib import Path

from duologue.hosts.job_questions import AskJobPiece, JobPiece
from duologue.hosts.served_jobs import MAX_PIECE_BYTES, answer_about_jobs
from tests.unit.jobs.desks import Echo, desk, record, until_ended


async def test_no_piece_is_longer_than_calls_can_wait_for(tmp_path: Path) -> None:
    echo = Echo()
    echo.go.set()
    async with desk(tmp_path, echo) as jobs:
        await jobs.submit(record(), bytes(3 * MAX_PIECE_BYTES))
        await until_ended(jobs, "job_1")
        piece = await answer_about_jobs(jobs, AskJobPiece("me", "job_1", 0, 1 << 30))
        assert isinstance(piece, JobPiece)
        assert (len(piece.data), piece.size_bytes) == (MAX_PIECE_BYTES, 3 * MAX_PIECE_BYTES)
        end = await answer_about_jobs(jobs, AskJobPiece("me", "job_1", piece.size_bytes, 100))
        assert end == JobPiece(b"", piece.size_bytes)
