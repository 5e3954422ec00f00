"""One call that does all that stock clients do, told to the server by OpenAI's SDK."""

from __future__ import annotations

from typing import Any

from duologue.settings import Settings
from tests.conformance.official_caller import OfficialCaller, Record, official_call
from tests.conformance.talking_gateway import API_KEY, talking_gateway, with_lead

TOOL = {
    "type": "function",
    "name": "look_up",
    "description": "Looks something up.",
    "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
}
SESSION: dict[str, Any] = {
    "type": "realtime",
    "model": "gpt-realtime",
    "instructions": "Be kind.",
    "output_modalities": ["audio"],
    "tools": [TOOL],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "max_output_tokens": "inf",
    "tracing": {"workflow_name": "w"},
    "truncation": "auto",
    "reasoning": {"effort": "low"},
    "prompt": None,
    "include": [],
    "a_key_of_tomorrow": {"deep": [1]},
    "audio": {
        "input": {
            "format": {"type": "audio/pcm", "rate": 24000},
            "noise_reduction": {"type": "near_field"},
            "transcription": {"model": "gpt-4o-mini-transcribe"},
            "turn_detection": {
                "type": "server_vad",
                "silence_duration_ms": 300,
                "create_response": True,
                "interrupt_response": True,
            },
        },
        "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "two", "speed": 1.0},
    },
}
VAD = SESSION["audio"]["input"]["turn_detection"]


def message(item_id: str, text: str, role: str = "user") -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text}]
    return {"id": item_id, "type": "message", "role": role, "content": content}


async def hold_call(settings: Settings) -> Record:
    """Hold the call and return what crossed."""
    async with (
        talking_gateway(with_lead(settings, 500)) as gateway,
        official_call(gateway.http_url, API_KEY) as caller,
    ):
        await tell_all(caller)
        return caller.record


async def tell_all(caller: OfficialCaller) -> None:
    """Do all of it, from the greeting on."""
    await caller.hear("session.created")
    await _configure(caller)
    await _write_history(caller)
    await _answer_in_writing(caller)
    await _speak_by_hand(caller)
    await _interrupt(caller)
    await _tell_results_of_tools(caller)
    await _call_a_function(caller)


async def _configure(caller: OfficialCaller) -> None:
    await caller.send(type="session.update", event_id="all", session=SESSION)
    await caller.hear("session.updated")
    # Both agent SDKs send this one right behind session.created.
    only_tracing = {"type": "realtime", "tracing": "auto"}
    await caller.send(type="session.update", event_id="tracing", session=only_tracing)
    await caller.hear("session.updated")
    cleared = {"turn_detection": None, "noise_reduction": None}
    patch = {"type": "realtime", "tracing": None, "audio": {"input": cleared}}
    await caller.send(type="session.update", event_id="cleared", session=patch)
    await caller.hear("session.updated")


async def _write_history(caller: OfficialCaller) -> None:
    async def create(event_id: str, item: dict[str, Any], previous: str | None = None) -> None:
        place = {} if previous is None else {"previous_item_id": previous}
        await caller.send(type="conversation.item.create", event_id=event_id, item=item, **place)
        await caller.hear("conversation.item.done", "error")

    await create("second", message("item_livekit_2", "hello"))
    await create("third", message("a" * 32, "Well, you said hello.", "assistant"), "item_livekit_2")
    await create("first", message("item_first", "Be short.", "system"), "root")
    await create("between", message("item_between", "again"), "item_first")
    await create("nowhere", message("item_nowhere", "hello"), "no_such_item")
    await create("twin", message("item_first", "hello"))
    await caller.send(type="conversation.item.delete", event_id="delete", item_id="item_between")
    await caller.hear("conversation.item.deleted")
    for event_id, item_id in (("retrieve", "item_first"), ("retrieve_none", "item_between")):
        await caller.send(type="conversation.item.retrieve", event_id=event_id, item_id=item_id)
        await caller.hear("conversation.item.retrieved", "error")


async def _answer_in_writing(caller: OfficialCaller) -> None:
    await caller.send(type="response.cancel", event_id="cancel_nothing")
    await caller.hear("error")
    response = {"output_modalities": ["text"], "metadata": {"client_event_id": "create_1"}}
    await caller.send(type="response.create", event_id="create_1", response=response)
    await caller.hear("response.done")


async def _speak_by_hand(caller: OfficialCaller) -> None:
    await caller.send(type="input_audio_buffer.commit", event_id="commit_nothing")
    await caller.hear("error")
    await caller.beep("hello again")
    await caller.send(type="input_audio_buffer.commit", event_id="commit")
    await caller.hear("conversation.item.input_audio_transcription.completed")
    await caller.send(type="response.create", event_id="create_2")
    await caller.send(type="response.create", event_id="create_3")
    await caller.hear("error")
    await caller.hear("response.done")
    await caller.beep("hello")
    await caller.send(type="input_audio_buffer.clear", event_id="clear")
    await caller.hear("input_audio_buffer.cleared")


async def _interrupt(caller: OfficialCaller) -> None:
    patch = {"type": "realtime", "audio": {"input": {"turn_detection": VAD}}}
    await caller.send(type="session.update", event_id="vad", session=patch)
    await caller.hear("session.updated")
    await caller.listen(500)  # a short word over an answer that still sounds is no turn
    await caller.say("long")
    item_id = (await caller.hear("response.output_audio.delta"))["item_id"]
    await caller.listen(1000)
    await caller.say("hello again")
    await caller.hear("response.done")
    for event_id, audio_end_ms in (("cut", 600), ("cut_again", 10**9), ("cut_to_nothing", 0)):
        await caller.send(
            type="conversation.item.truncate",
            event_id=event_id,
            item_id=item_id,
            content_index=0,
            audio_end_ms=audio_end_ms,
        )
    await caller.hear("response.done")
    await caller.send(type="conversation.item.retrieve", event_id="retrieve_cut", item_id=item_id)
    await caller.hear("conversation.item.retrieved")


async def _tell_results_of_tools(caller: OfficialCaller) -> None:
    call = {"id": "item_call", "type": "function_call", "name": "look_up", "call_id": "call_1"}
    call |= {"arguments": '{"what":"x"}'}
    output = {"id": "item_result", "type": "function_call_output", "call_id": "call_1"}
    output |= {"output": "found"}
    for event_id, item in (("call", call), ("result", output)):
        await caller.send(type="conversation.item.create", event_id=event_id, item=item)
        await caller.hear("conversation.item.done", "error")
    await caller.listen(300)
    await caller.send(type="response.create", event_id="create_4")
    await caller.hear("response.done")


async def _call_a_function(caller: OfficialCaller) -> None:
    question = message("item_look_up", "Please look up x.")
    await caller.send(type="conversation.item.create", event_id="ask", item=question)
    await caller.hear("conversation.item.done")
    await caller.send(type="response.create", event_id="create_5")
    call_id = (await caller.hear("response.function_call_arguments.done"))["call_id"]
    await caller.hear("response.done")
    output = {"type": "function_call_output", "call_id": call_id, "output": "x is found"}
    await caller.send(type="conversation.item.create", event_id="found", item=output)
    await caller.hear("conversation.item.done")
    await caller.send(type="conversation.item.create", event_id="found_again", item=output)
    await caller.hear("error")
    await caller.listen(300)
    await caller.send(type="response.create", event_id="create_6")
    await caller.hear("response.done")
