"""The conversation of the demonstration: who says what, and when.

This module must not judge what happens, nor know how the server was started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from duologue.clients.client import DuplexClient
from duologue.clients.clip_device import FRAME_MS, ClipDevice
from duologue.clients.errors import CallError, CommandRefused
from duologue.clients.playback import RATE_HZ
from duologue.commands.demo.checks import INTERRUPTED_TURN
from duologue.commands.demo.questions import Question
from duologue.commands.demo.record import CallRecord, CallRecorder, TurnRecord, match_turns
from duologue.commands.talk.transcript_view import TranscriptView
from duologue.core.audio import ms_to_samples
from duologue.core.clock import Clock
from duologue.core.errors import DuologueError
from duologue.protocol.events import TranscriptionCompleted, TranscriptionFailed
from duologue.protocol.items import MessageItem, OutputAudio
from duologue.protocol.session_config import SessionResource

TAIL_S = 0.4
"""Silence after speech that is transcribed: recognisers are used to some."""

ANSWER_TIMEOUT_S = 45.0
ANSWER_LIMIT_S = 60.0
REFRESH_S = 0.1


@dataclass(frozen=True, slots=True)
class Manners:
    """How the caller takes turns.

    Args:
        room_s: Quiet before the first question and after the last answer.
        breath_s: Between an answer and the next question.
        heard_before_interruption_s: With the time that it takes to be sure, the cut falls nearly
            two seconds into the answer.
    """

    room_s: float = 0.4
    breath_s: float = 0.5
    heard_before_interruption_s: float = 1.2


POLITE = Manners()


class DemoFailed(DuologueError):
    """The call could not be held; the message says what was missing."""

    default_code = "demo_failed"


async def hold_call(
    url: str,
    questions: Sequence[Question],
    view: TranscriptView,
    clock: Clock,
    *,
    api_key: str | None = None,
    manners: Manners = POLITE,
) -> CallRecord:
    """Ask the questions in real time, the third one over the answer to the second.

    Raises:
        DemoFailed: No answer comes.
        CallError: There is no server, or the call broke.
    """
    recorder = CallRecorder(ms_to_samples(FRAME_MS, RATE_HZ))
    record = recorder.record
    device = ClipDevice(on_frame=recorder.on_frame, clock=clock)
    async with DuplexClient.connect(url, api_key=api_key, device=device, clock=clock) as call:
        session = await call.update(transcription=True)
        if session.audio.input.turn_detection is None:
            raise DemoFailed(
                "the server detects no turns (turn_detection is off): it runs without a voice "
                "activity detector. Start it with the pipelines vad and end_of_turn."
            )
        assert isinstance(session, SessionResource), "a call is no session for transcripts"
        record.model = session.model
        async with asyncio.TaskGroup() as group:
            watchers = (
                group.create_task(_watch(call, recorder), name="recorder"),
                group.create_task(_show(call, view), name="view"),
            )
            failure = await _asked_all(call, device, record, questions, manners)
            for watcher in watchers:
                watcher.cancel()
        if failure is not None:
            view.finish(call.transcript)
            raise failure
        record.started_at = device.started_at
        record.gap_s = call.playback.gap_samples / RATE_HZ
        match_turns(record.turns, list(call.timing), record)
        for turn in record.turns:
            await _complete(call, turn)
        view.finish(call.transcript)
    return record


async def _asked_all(
    call: DuplexClient,
    device: ClipDevice,
    record: CallRecord,
    questions: Sequence[Question],
    manners: Manners,
) -> DuologueError | None:
    """Return what went wrong: raised in a task group, it would come out wrapped."""
    try:
        await _ask_all(call, device, record, questions, manners)
    except DuologueError as exc:
        return exc
    except TimeoutError:
        return DemoFailed(f"an answer went on for more than {ANSWER_LIMIT_S:.0f} s")
    return None


async def _ask_all(
    call: DuplexClient,
    device: ClipDevice,
    record: CallRecord,
    questions: Sequence[Question],
    manners: Manners,
) -> None:
    await asyncio.sleep(manners.room_s)
    for number, question in enumerate(questions):
        if number == INTERRUPTED_TURN + 1:
            await _listen_for_a_while(call, manners.heard_before_interruption_s)
        answered = sum(turn.audible_at is not None for turn in call.timing)
        start = device.say(question.pcm)
        record.turns.append(TurnRecord(question, start / RATE_HZ))
        await _wait_for_answer(call, record, question, answered)
        if number != INTERRUPTED_TURN:
            await call.wait_until_quiet(ANSWER_LIMIT_S)
            await asyncio.sleep(manners.breath_s)
    await asyncio.sleep(manners.room_s)


async def _wait_for_answer(
    call: DuplexClient, record: CallRecord, question: Question, answered: int
) -> None:
    def is_audible() -> bool:
        return sum(turn.audible_at is not None for turn in call.timing) > answered

    limit_s = len(question.pcm) / 2 / RATE_HZ + ANSWER_TIMEOUT_S
    with suppress(TimeoutError):
        await call.wait_until(lambda: is_audible() or bool(record.failure()), limit_s)
    if is_audible():
        return
    failure = record.failure()
    what = f"failed ({failure})" if failure else f"was not heard within {ANSWER_TIMEOUT_S:.0f} s"
    raise DemoFailed(
        f"the answer to “{question.text}” {what}. "
        f"Understood so far: {str(call.transcript) or 'nothing'}"
    )


async def _listen_for_a_while(call: DuplexClient, seconds: float) -> None:
    """Hear enough of the answer for an interruption in its middle, or all of it."""
    playback = call.playback
    speaking = playback.speaking
    wanted = int(seconds * RATE_HZ)
    if speaking is not None:
        item_id: str = speaking
        await call.wait_until(
            lambda: playback.heard_samples(item_id) >= wanted or not call.answering,
            ANSWER_LIMIT_S,
        )


async def _complete(call: DuplexClient, turn: TurnRecord) -> None:
    """Ask the server what it keeps of a turn."""
    if turn.timing is not None:
        line = call.transcript.get(turn.timing.item_id)
        turn.transcript = "" if line is None else line.text
    answer = turn.answer
    if answer is None or not answer.item_id:
        return
    try:
        item = await call.retrieve(answer.item_id)
    except CommandRefused:
        return
    if isinstance(item, MessageItem):
        answer.history = "".join(
            part.transcript or "" for part in item.content if isinstance(part, OutputAudio)
        )


async def transcribe_answers(url: str, record: CallRecord, *, api_key: str | None = None) -> None:
    """Let the server's recogniser transcribe what was played of each answer, in a second call.

    Raises:
        CallError: There is no server any more.
        CommandRefused: It does not transcribe.
    """
    async with DuplexClient.connect(url, api_key=api_key) as call:
        await call.update(transcription=True, turn_detection=None)
        for answer in record.answers.values():
            played = record.played_of(answer.item_id)
            if played:
                answer.transcribed = await transcribe(call, played)


async def transcribe(call: DuplexClient, pcm: bytes) -> str:
    """Return what the server's recogniser makes of some speech; empty where it fails.

    Raises:
        DemoFailed: It does not answer.
        CommandRefused: There is too little to be transcribed.
    """
    news = call.events()
    call.send_audio(pcm + bytes(2 * int(TAIL_S * RATE_HZ)))
    item_id = await call.commit_audio()
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            async for event in news:
                match event:
                    case TranscriptionCompleted(item_id=found, transcript=text):
                        if found == item_id:
                            return text
                    case TranscriptionFailed(item_id=found):
                        if found == item_id:
                            return ""
                    case _:
                        pass
    except TimeoutError as exc:
        raise DemoFailed(
            f"the answer was not transcribed back within {ANSWER_TIMEOUT_S:.0f} s"
        ) from exc
    return ""


async def _watch(call: DuplexClient, recorder: CallRecorder) -> None:
    with suppress(CallError):  # the conversation notices it, too
        async for event in call.events():
            recorder.on_event(event)


async def _show(call: DuplexClient, view: TranscriptView) -> None:
    while True:
        view.show(call.transcript)
        await asyncio.sleep(REFRESH_S)
