"""A call with OpenAI's Agents SDK for Python, which checks each event against strict types."""

import asyncio

from agents import function_tool
from agents.realtime import RealtimeAgent, RealtimeRunner, RealtimeSession
from calling import (
    API_KEY,
    ONE_QUESTION,
    QUESTION,
    WS_URL,
    Complaints,
    Heard,
    microphone,
    report,
    speech,
)


@function_tool
def weather(what: str) -> str:
    """Tell the weather."""
    return f"sun over {what}"


def listen(heard: Heard, event: object) -> None:
    match event.type:
        case "audio":
            heard.count("audio_bytes", len(event.audio.data))
            heard.count(f"audio_of_{event.item_id}", len(event.audio.data))
            heard.note(speaking=event.item_id)
        case "audio_end":
            heard.count("answers")
        case "audio_interrupted":
            heard.count("interruptions")
        case "tool_end":
            heard.note(tool=event.output)
        case "error":
            heard.note(error=str(event.error)[:500])
        case "history_updated" | "history_added":
            items = event.history if event.type == "history_updated" else [event.item]
            for item in items:
                for part in getattr(item, "content", []):
                    text = getattr(part, "transcript", None) or getattr(part, "text", None)
                    if text:
                        heard.note(**{f"{item.role}: {text}": True})


async def say(session: RealtimeSession, pcm: bytes) -> None:
    async for chunk in microphone(pcm):
        await session.send_audio(chunk)


async def main(heard: Heard) -> None:
    agent = RealtimeAgent(name="a", instructions="Be kind.", tools=[weather])
    runner = RealtimeRunner(
        agent,
        config={
            "model_settings": {
                "modalities": ["audio"],
                "input_audio_transcription": {"model": "gpt-4o-mini-transcribe"},
                "turn_detection": {"type": "server_vad", "interrupt_response": True},
            },
            "tracing_disabled": True,
        },
    )
    async with await runner.run(model_config={"url": WS_URL, "api_key": API_KEY}) as session:

        async def read() -> None:
            async for event in session:
                listen(heard, event)

        async with asyncio.TaskGroup() as group:
            reading = group.create_task(read())
            if ONE_QUESTION:
                await say(session, speech(QUESTION))
                await heard.until("answers", 1)
                reading.cancel()
                return
            await say(session, speech("hello again"))
            await heard.until("user: hello again")
            await heard.until("assistant: Well, you said hello again.")
            await heard.until("answers", 1)

            await session.send_message("tell me something long")
            await heard.until("audio_bytes", int(heard.notes["audio_bytes"]) + 24_000)
            await say(session, speech("hello again"))
            await heard.until("interruptions", 1)
            await heard.until("answers", 3)

            await session.send_message("what of the weather")
            await heard.until("tool")
            await heard.until("assistant: Well, you said sun over x.")
            reading.cancel()


complaints, heard = Complaints(), Heard()
asyncio.run(main(heard))
report(heard.notes, complaints.said)
