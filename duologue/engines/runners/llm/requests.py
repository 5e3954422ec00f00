"""Requests to a language model: how one is taken, and what it means to a library that knows less.

This module must not know any library.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from duologue.core.errors import EngineError
from duologue.engines.payloads import NO_TOOLS, ChatRequest
from duologue.engines.runners.contract import Job
from duologue.engines.runners.llm.chat_chunk import REQUEST_REFUSED
from duologue.engines.runners.llm.tool_text import schema_of_call


def take_request(job: Job) -> ChatRequest:
    """Take the job's next input.

    Raises:
        EngineError: It is something else.
    """
    request = job.inputs.popleft()
    if not isinstance(request, ChatRequest):
        kind = type(request).__name__
        raise EngineError(f"a language model reads a ChatRequest, not {kind}")
    return request


def refuse_pictures(request: ChatRequest) -> None:
    """Refuse what a model that does not see cannot read.

    Raises:
        EngineError: There is a picture.
    """
    if any(message.images for message in request.messages):
        raise EngineError("this language model does not see pictures", code=REQUEST_REFUSED)


def held_to_calls(request: ChatRequest) -> ChatRequest:
    """Return the request for a library that knows no choice of functions but ``auto``.

    A model that may call nothing is shown nothing; one that must is held to the form of a call.
    """
    tools = request.tools
    if not tools.callable:
        return msgspec.structs.replace(request, tools=NO_TOOLS)
    if tools.choice != "required":
        return request
    free = msgspec.structs.replace(tools, choice="auto", only="")
    schema = request.schema or schema_of_call(tools)
    return msgspec.structs.replace(request, tools=free, schema=schema)


def no_adapter(name: str, known: Collection[str]) -> EngineError:
    """Return the error of a request for weights that nobody has laid beside the model."""
    names = ", ".join(sorted(known)) or "none"
    return EngineError(
        f"the language model has no adapter {name!r}; there are: {names}", code=REQUEST_REFUSED
    )
