"""A call with LiveKit's AgentSession and its OpenAI plugin, without a room."""

import asyncio
import time

from calling import (
    API_KEY,
    BASE_URL,
    ONE_QUESTION,
    QUESTION,
    RATE_HZ,
    Complaints,
    Heard,
    microphone,
    report,
    speech,
)
from livekit import rtc
from livekit.agents import Agent, AgentSession, function_tool
from livekit.agents.voice import io
from livekit.plugins import openai


class Microphone(io.AudioInput):
    """What is said, as frames."""

    def __init__(self) -> None:
        super().__init__(label="microphone")
        self._frames: asyncio.Queue[rtc.AudioFrame] = asyncio.Queue()

    async def __anext__(self) -> rtc.AudioFrame:
        return await self._frames.get()

    async def say(self, pcm: bytes) -> None:
        async for chunk in microphone(pcm):
            self._frames.put_nowait(rtc.AudioFrame(chunk, RATE_HZ, 1, len(chunk) // 2))


class Speaker(io.AudioOutput):
    """Plays at the pace of a sound card, and says how much of it was played."""

    def __init__(self, heard: Heard) -> None:
        super().__init__(
            label="speaker",
            capabilities=io.AudioOutputCapabilities(pause=False),
            sample_rate=RATE_HZ,
        )
        self._heard = heard
        self._began_at: float | None = None
        self._length_s = 0.0
        self._end: asyncio.TimerHandle | None = None

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        if self._began_at is None:
            self._began_at = time.monotonic()
            self._length_s = 0.0
            self.on_playback_started(created_at=time.time())
        self._length_s += frame.duration
        self._heard.count("samples", frame.samples_per_channel)

    def flush(self) -> None:
        super().flush()
        if self._began_at is not None:
            left_s = max(0.0, self._began_at + self._length_s - time.monotonic())
            self._end = asyncio.get_running_loop().call_later(left_s, self._finish, False)

    def clear_buffer(self) -> None:
        if self._began_at is not None:
            self._finish(True)

    def _finish(self, interrupted: bool) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
        assert self._began_at is not None
        played_s = min(self._length_s, time.monotonic() - self._began_at)
        self._began_at = None
        self._heard.count("cut" if interrupted else "played")
        self.on_playback_finished(playback_position=played_s, interrupted=interrupted)


class Assistant(Agent):
    """An agent with a tool."""

    def __init__(self, heard: Heard) -> None:
        super().__init__(instructions="Be kind.")
        self._heard = heard

    @function_tool
    async def weather(self, what: str) -> str:
        """Tell the weather."""
        self._heard.note(tool=what)
        return f"sun over {what}"


async def main(heard: Heard) -> None:
    session = AgentSession(
        llm=openai.realtime.RealtimeModel(base_url=BASE_URL, api_key=API_KEY, voice="marin"),
        aec_warmup_duration=None,  # this speaker is not heard by the microphone
        turn_handling={"interruption": {"resume_false_interruption": False}},
    )
    mic = Microphone()
    session.input.audio = mic
    session.output.audio = Speaker(heard)
    session.on("error", lambda event: heard.note(error=str(event.error)[:500]))

    @session.on("conversation_item_added")
    def on_item(event: object) -> None:
        item = event.item
        if item.type == "message":
            heard.note(**{f"{item.role}: {item.text_content}": True})
            heard.count(f"{item.role} items")
            if item.role == "assistant" and item.interrupted:
                heard.note(cut_text=item.text_content)

    await session.start(Assistant(heard), record=False)
    if ONE_QUESTION:
        await mic.say(speech(QUESTION))
        await heard.until("played", 1)
        await session.aclose()
        return
    await mic.say(speech("hello again"))
    await heard.until("user: hello again")
    await heard.until("assistant: Well, you said hello again.")
    await heard.until("played", 1)

    long = session.generate_reply(user_input="tell me something long")
    before = int(heard.notes["samples"])
    await heard.until("samples", before + RATE_HZ)
    await mic.say(speech("hello again"))
    await heard.until("cut", 1)
    await long
    await heard.until("played", 2)

    reply = session.generate_reply(user_input="what of the weather")
    await reply
    await heard.until("tool")
    await heard.until("assistant: Well, you said sun over x.")
    heard.note(history=[getattr(item, "text_content", item.type) for item in session.history.items])
    await session.aclose()


complaints, heard = Complaints(), Heard()
asyncio.run(main(heard))
report(heard.notes, complaints.said)
