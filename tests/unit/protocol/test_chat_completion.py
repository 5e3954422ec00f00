from __future__ import annotations

from typing import Any

import msgspec
from openai.types.chat import ChatCompletion as TheirCompletion
from openai.types.chat import ChatCompletionChunk as TheirChunk

from duologue.protocol.chat_completion import (
    AudioChunkDelta,
    CalledFunction,
    ChatCompletion,
    ChatCompletionChunk,
    ChunkChoice,
    ChunkDelta,
    CompletionAudio,
    CompletionChoice,
    CompletionDetails,
    CompletionMessage,
    CompletionToolCall,
    CompletionUsage,
    FunctionDelta,
    PromptDetails,
    ToolCallChunk,
)

USAGE = CompletionUsage(
    prompt_tokens=1,
    completion_tokens=2,
    total_tokens=3,
    prompt_tokens_details=PromptDetails(),
    completion_tokens_details=CompletionDetails(),
)


def completion(message: CompletionMessage) -> bytes:
    choice = CompletionChoice(message=message, finish_reason="stop")
    answer = ChatCompletion(id="x", created=1, model="m", choices=(choice,), usage=USAGE)
    return msgspec.json.encode(answer)


def delta(delta: ChunkDelta) -> dict[str, Any]:
    chunk = ChatCompletionChunk(
        id="x", created=1, model="m", choices=(ChunkChoice(delta=delta),), usage=None
    )
    wire = msgspec.json.encode(chunk)
    TheirChunk.model_validate_json(wire, strict=True)
    found: dict[str, Any] = msgspec.json.decode(wire)["choices"][0]["delta"]
    return found


def test_an_answer_is_what_the_official_client_expects() -> None:
    call = CompletionToolCall(id="c", function=CalledFunction(name="f", arguments="{}"))
    theirs = TheirCompletion.model_validate_json(
        completion(CompletionMessage(content=None, tool_calls=(call,))), strict=True
    )
    message = theirs.choices[0].message
    assert message.content is None
    assert message.tool_calls is not None
    assert message.tool_calls[0].id == "c"
    assert theirs.usage is not None
    assert theirs.usage.total_tokens == 3


def test_a_spoken_answer_holds_base64_and_its_text() -> None:
    audio = CompletionAudio(id="a", data=b"\x00\x01", expires_at=5, transcript="Hi")
    wire = completion(CompletionMessage(content=None, audio=audio))
    theirs = TheirCompletion.model_validate_json(wire, strict=True).choices[0].message.audio
    assert theirs is not None
    assert (theirs.data, theirs.transcript) == ("AAE=", "Hi")


def test_a_plain_answer_mentions_neither_tools_nor_audio() -> None:
    message = msgspec.json.decode(completion(CompletionMessage(content="Hi")))["choices"][0]
    assert message["message"] == {"role": "assistant", "content": "Hi", "refusal": None}


def test_chunks_hold_what_is_new_and_nothing_else() -> None:
    assert delta(ChunkDelta()) == {}
    assert delta(ChunkDelta(role="assistant", content=None)) == {
        "role": "assistant",
        "content": None,
    }
    assert delta(ChunkDelta(audio=AudioChunkDelta(data=b"\x00"))) == {"audio": {"data": "AA=="}}
    first = ToolCallChunk(
        index=0, id="c", type="function", function=FunctionDelta(name="f", arguments="")
    )
    later = ToolCallChunk(index=0, function=FunctionDelta(arguments="{"))
    assert delta(ChunkDelta(tool_calls=(first,))) == {
        "tool_calls": [
            {
                "index": 0,
                "id": "c",
                "type": "function",
                "function": {"name": "f", "arguments": ""},
            }
        ]
    }
    assert delta(ChunkDelta(tool_calls=(later,))) == {
        "tool_calls": [{"index": 0, "function": {"arguments": "{"}}]
    }
