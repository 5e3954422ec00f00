"""LiveKit's separate services: language model, recogniser (by request and by stream), voice."""

import asyncio

from calling import API_KEY, BASE_URL, RATE_HZ, Complaints, Heard, microphone, report, speech
from livekit import rtc
from livekit.agents import function_tool, llm, stt
from livekit.agents.utils import http_context
from livekit.plugins import openai


@function_tool
async def weather(what: str) -> str:
    """Tell the weather."""
    return f"sun over {what}"


async def ask(model: openai.LLM, context: llm.ChatContext, heard: Heard) -> str:
    """Let the model answer; tool calls are run and their results put into the context."""
    said = ""
    async with model.chat(chat_ctx=context, tools=[weather]) as stream:
        async for chunk in stream:
            if chunk.usage is not None:
                heard.note(tokens=chunk.usage.total_tokens)
            if chunk.delta is None:
                continue
            said += chunk.delta.content or ""
            for call in chunk.delta.tool_calls:
                heard.note(tool_arguments=call.arguments)
                made = llm.FunctionCall(
                    call_id=call.call_id, name=call.name, arguments=call.arguments
                )
                context.insert(made)
                context.insert(
                    llm.FunctionCallOutput(
                        call_id=call.call_id,
                        name=call.name,
                        output="sun over x",
                        is_error=False,
                    )
                )
    return said


def frame(pcm: bytes) -> rtc.AudioFrame:
    return rtc.AudioFrame(pcm, RATE_HZ, 1, len(pcm) // 2)


async def stream_in(recogniser: openai.STT, heard: Heard) -> None:
    """Speak to the realtime recogniser."""
    async with recogniser.stream() as stream:

        async def speak() -> None:
            async for chunk in microphone(speech("hello again")):
                stream.push_frame(frame(chunk))

        async with asyncio.TaskGroup() as group:
            group.create_task(speak())
            async for event in stream:
                if event.type == stt.SpeechEventType.FINAL_TRANSCRIPT:
                    heard.note(streamed=event.alternatives[0].text)
                    break


async def main() -> None:
    complaints, heard = Complaints(), Heard()
    door = {"base_url": BASE_URL, "api_key": API_KEY}
    async with http_context.open():
        model = openai.LLM(model="gpt-4.1", **door)
        context = llm.ChatContext()
        context.add_message(role="system", content="Be kind.")
        context.add_message(role="user", content="hello there")
        heard.note(answer=await ask(model, context, heard))
        context.add_message(role="user", content="what of the weather")
        await ask(model, context, heard)
        heard.note(weather=await ask(model, context, heard))

        recogniser = openai.STT(model="gpt-4o-mini-transcribe", **door)
        heard.note(
            recognised=(await recogniser.recognize(frame(speech("hello again"))))
            .alternatives[0]
            .text
        )
        await stream_in(openai.STT(use_realtime=True, **door), heard)

        voice = openai.TTS(voice="ash", **door)
        async with voice.synthesize("Good morning to you.") as spoken:
            async for piece in spoken:
                heard.count("voice_samples", piece.frame.samples_per_channel)
    report(heard.notes, complaints.said)


asyncio.run(main())
