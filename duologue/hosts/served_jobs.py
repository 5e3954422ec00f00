"""The jobs of a session host, for gateways that are elsewhere.

This module must not know links, nor what the work is.
"""

from __future__ import annotations

from duologue.core.errors import DuologueError
from duologue.hosts.job_questions import (
    AskDeleteJob,
    AskJob,
    AskJobPiece,
    AskJobs,
    AskJobWithKey,
    AskSubmitJob,
    JobPiece,
    JobQuestion,
    JobReply,
    OneJob,
    SomeJobs,
)
from duologue.jobs.port import JobPort

MAX_PIECE_BYTES = 64 * 1024
"""Of a result, in one answer: calls share the link."""


async def answer_about_jobs(jobs: JobPort | None, question: JobQuestion) -> JobReply:
    """Answer a question.

    Args:
        jobs: ``None``: no model of this host does any.

    Raises:
        DuologueError: As ``JobPort``.
    """
    if jobs is None:
        raise DuologueError("this session host keeps no jobs: its models are not the gateway's")
    match question:
        case AskSubmitJob(record=record, request=request):
            return OneJob(await jobs.submit(record, request))
        case AskJobWithKey(caller=caller, key=key):
            return OneJob(await jobs.with_key(caller, key))
        case AskJob(caller=caller, job_id=job_id):
            return OneJob(await jobs.get(caller, job_id))
        case AskJobs(caller=caller, kind=kind, after=after):
            found = await jobs.page(
                caller, kind, after=after, limit=question.limit, newest_first=question.newest_first
            )
            return SomeJobs(found)
        case AskJobPiece():
            return await _piece(jobs, question)
        case AskDeleteJob(caller=caller, job_id=job_id):
            await jobs.delete(caller, job_id)
            return OneJob(None)


async def _piece(jobs: JobPort, question: AskJobPiece) -> JobPiece:
    result = await jobs.result(question.caller, question.job_id, question.start)
    try:
        data = await result.read(min(question.most, MAX_PIECE_BYTES))
    finally:
        await result.close()
    return JobPiece(data, result.size_bytes)
