"""LiteLLM as a proxy in the middle (C69): OpenAI's SDK speaks to it, and it speaks to us.

It reads what we answer and writes it again, so it is a client of its own. It must pass on all that
it can, and log no warning. ``make conformance`` runs this.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError

from duologue.codecs.containers.wav import wav_header
from duologue.settings import Settings
from tests.conformance.litellm_proxy import KEY, litellm_proxy
from tests.conformance.official_caller import Record, official_call
from tests.conformance.recorded_call import SESSION, TOOL, tell_all
from tests.conformance.talking_gateway import talking_gateway, with_lead
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.clients

ANSWER = "Well, you said hello there."
SAID = "hello again"
_PCM = beeps(SAID)
RECORDING = ("speech.wav", wav_header(BEEP_RATE_HZ, len(_PCM)) + _PCM)
HELLO: Any = {"role": "user", "content": "hello there"}
FUNCTION: Any = {"type": "function", "function": {"name": TOOL["name"], "parameters": {}}}


async def test_c69_litellm_in_the_middle_of_everything(settings: Settings, tmp_path: Path) -> None:
    async with (
        talking_gateway(with_lead(settings, 500)) as gateway,
        litellm_proxy(gateway, tmp_path) as proxy,
        AsyncOpenAI(api_key=KEY, base_url=proxy.http_url, max_retries=0) as client,
    ):
        await chat(client)
        await call_a_function(client)
        await speak_in_chat(client)
        await speak(client)
        await transcribe(client)
        async with official_call(proxy.http_url, KEY) as caller:
            await tell_all(caller)
        check_call(caller.record)
        assert proxy.complaints == []
        # It logs what it refuses, so this comes last.
        await learn_why_it_was_refused(client)
        await gateway.app.sessions.wait_empty(PATIENCE_S)
        assert gateway.app.engine.stats().requests == 0


async def chat(client: AsyncOpenAI) -> None:
    whole = await client.chat.completions.create(model="duologue", messages=[HELLO])
    assert whole.choices[0].message.content == ANSWER
    assert whole.choices[0].finish_reason == "stop"
    assert whole.usage is not None
    stream = await client.chat.completions.create(
        model="duologue", messages=[HELLO], stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    said = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(said) == ANSWER
    assert sum(map(bool, said)) > 2, "it came in pieces"
    ends = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert [end for end in ends if end] == ["stop"]
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.total_tokens == whole.usage.total_tokens > 1


async def call_a_function(client: AsyncOpenAI) -> None:
    asked: Any = {"role": "user", "content": "Please look up x."}
    how: Any = {"model": "duologue", "tools": [FUNCTION]}
    whole = await client.chat.completions.create(messages=[asked], **how)
    assert whole.choices[0].finish_reason == "tool_calls"
    message = whole.choices[0].message
    assert message.tool_calls is not None
    (call,) = message.tool_calls
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == (
        TOOL["name"],
        {"what": "x"},
    )

    stream = await client.chat.completions.create(messages=[asked], stream=True, **how)
    deltas = [chunk.choices[0].delta async for chunk in stream if chunk.choices]
    parts = [part for delta in deltas for part in delta.tool_calls or ()]
    assert parts[0].id is not None
    functions = [part.function for part in parts if part.function is not None]
    assert functions[0].name == TOOL["name"]
    assert json.loads("".join(each.arguments or "" for each in functions)) == {"what": "x"}

    output: Any = {"role": "tool", "tool_call_id": call.id, "content": "x is found"}
    told: Any = message.model_dump(exclude_none=True)
    answer = await client.chat.completions.create(messages=[asked, told, output], **how)
    assert answer.choices[0].message.content == "Well, you said x is found."


async def speak_in_chat(client: AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(
        model="duologue",
        messages=[HELLO],
        modalities=["text", "audio"],
        audio={"voice": "ash", "format": "wav"},
    )
    audio = answer.choices[0].message.audio
    assert audio is not None
    assert audio.transcript == ANSWER
    assert len(audio.data) > 10_000


async def speak(client: AsyncOpenAI) -> None:
    asked: Any = {"model": "gpt-4o-mini-tts", "input": "Good morning to you.", "voice": "ash"}
    pcm = await client.audio.speech.create(response_format="pcm", **asked)
    wav = await client.audio.speech.create(response_format="wav", **asked)
    assert len(pcm.content) > 4_000
    assert wav.content[:4] == b"RIFF"
    assert wav.content[-len(pcm.content) :] == pcm.content
    async with client.audio.speech.with_streaming_response.create(
        response_format="pcm", **asked
    ) as streamed:
        assert b"".join([piece async for piece in streamed.iter_bytes()]) == pcm.content


async def transcribe(client: AsyncOpenAI) -> None:
    """Transcripts come whole: streams of them are nothing that the proxy passes on."""
    create = client.audio.transcriptions.create
    plain = await create(model="gpt-4o-transcribe", file=RECORDING)
    assert plain.text == SAID
    full = await create(
        model="whisper-1",
        file=RECORDING,
        response_format="verbose_json",
        timestamp_granularities=["word"],
    )
    assert full.text == SAID
    assert [word.word for word in full.words or ()] == SAID.split()


def check_call(record: Record) -> None:
    """The call came through whole; each event was held against the SDK's classes as it came."""
    updated = record.of("session.updated")[0]["session"]
    assert updated["instructions"] == SESSION["instructions"]
    statuses = [event["response"]["status"] for event in record.of("response.done")]
    assert statuses.count("cancelled") == 1
    assert statuses.count("completed") == len(statuses) - 1
    assert len(record.of("conversation.item.truncated")) >= 3
    (call,) = record.of("response.function_call_arguments.done")
    assert call["name"] == TOOL["name"]
    heard = record.of("conversation.item.input_audio_transcription.completed")
    assert [event["transcript"] for event in heard][-1] == SAID
    # Refusals come back with the client's own id, and end nothing.
    refusals = {event["error"]["event_id"]: event["error"]["code"] for event in record.of("error")}
    assert refusals["cancel_nothing"] == "response_cancel_not_active"
    assert refusals["commit_nothing"] == "input_audio_buffer_commit_empty"
    assert refusals["create_3"] == "conversation_already_has_active_response"


async def learn_why_it_was_refused(client: AsyncOpenAI) -> None:
    with pytest.raises(BadRequestError, match=r"temperature: Expected `float` <= 2\.0"):
        await client.chat.completions.create(model="duologue", messages=[HELLO], temperature=99)
