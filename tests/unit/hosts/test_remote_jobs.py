"""Both ends of questions about jobs, with a desk behind them and nothing between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from duologue.core.errors import DuologueError, ProtocolError
from duologue.hosts.job_questions import JobQuestion
from duologue.hosts.questions import Question, Reply
from duologue.hosts.remote_jobs import RemoteJobs
from duologue.hosts.served_jobs import MAX_PIECE_BYTES, answer_about_jobs
from duologue.jobs.port import JobPort, position_of, read_all
from tests.unit.jobs.desks import Echo, desk, record, until, until_ended

_question: Any = msgspec.msgpack.Decoder(Question)
_reply: Any = msgspec.msgpack.Decoder(Reply)


def remote(jobs: JobPort | None, asked: list[JobQuestion]) -> RemoteJobs:
    """Questions and answers travel in their written form."""

    async def ask(question: Question) -> Reply:
        assert isinstance(question, JobQuestion)
        asked.append(question)
        there = _question.decode(msgspec.msgpack.encode(question))
        reply = await answer_about_jobs(jobs, there)
        answer: Reply = _reply.decode(msgspec.msgpack.encode(reply))
        return answer

    return RemoteJobs(ask)


async def test_jobs_of_a_host_are_as_ones_own(tmp_path: Path) -> None:
    echo = Echo()
    echo.go.set()
    film = bytes(range(256)) * (MAX_PIECE_BYTES // 128)
    async with desk(tmp_path, echo, max_running=1) as kept:
        asked: list[JobQuestion] = []
        jobs = remote(kept, asked)
        first = record(1, idempotency_key="k", fingerprint=b"1")
        assert await jobs.submit(first, film) == first
        assert echo.begun == []
        again = await jobs.submit(record(9, idempotency_key="k", fingerprint=b"1"), film)
        assert again.id == "job_1"
        await until_ended(kept, "job_1")
        assert await jobs.with_key("me", "k") == await jobs.get("me", "job_1")
        assert await jobs.with_key("me", "other") is None
        await jobs.submit(record(2), b"hello")
        page = await jobs.page("me", "echo", after=None, limit=5, newest_first=True)
        assert [each.id for each in page] == ["job_2", "job_1"]
        place = position_of(page[0])
        rest = await jobs.page("me", "echo", after=place, limit=5, newest_first=True)
        assert [each.id for each in rest] == ["job_1"]

        asked.clear()
        result = await jobs.result("me", "job_1")
        assert result.size_bytes == len(film)
        assert await result.read(10) == film[:10]
        assert await read_all(result, 1 << 20) == film[10:]
        assert len(asked) == len(film) // MAX_PIECE_BYTES + 1, "pieces of a size, and the end"
        assert await read_all(await jobs.result("me", "job_1", len(film) - 3), 100) == film[-3:]

        await jobs.delete("me", "job_1")
        for attempt in (jobs.get("me", "job_1"), jobs.result("me", "job_1")):
            with pytest.raises(ProtocolError) as gone:
                await attempt
            assert gone.value.code == "video_not_found"
        await until(lambda: len(echo.begun) == 2)


async def test_a_host_without_such_models_says_so() -> None:
    with pytest.raises(DuologueError, match="keeps no jobs"):
        await remote(None, []).get("me", "job_1")
