from __future__ import annotations

import asyncio
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from duologue.app import running_app
from duologue.clients import DuplexClient
from duologue.commands.demo.checks import check_interruption
from duologue.commands.demo.conversation import DemoFailed, Manners, hold_call, transcribe
from duologue.commands.demo.questions import Question
from duologue.commands.talk.transcript_view import TranscriptView
from duologue.core.clock import SystemClock
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import CommitAudio
from duologue.protocol.events import (
    AudioCommitted,
    TranscriptionError,
    TranscriptionFailed,
)
from tests.fakes.server import FakeTransport, greeting, transcribed
from tests.fakes.small_gateway import small_settings
from tests.fakes.talking_gateway import LONG_LINE, SHORT_LINE, speech, talking_settings

HASTY = Manners(room_s=0.1, breath_s=0.1, heard_before_interruption_s=0.4)
QUESTIONS = [Question(f"q{n}", f"Question {n}?", (), speech(500), 0.0, 0.5) for n in range(3)]


def view() -> TranscriptView:
    return TranscriptView(Console(file=StringIO()))


async def test_three_questions_are_asked_and_the_third_interrupts(tmp_path: Path) -> None:
    settings = talking_settings(tmp_path, SHORT_LINE, LONG_LINE, SHORT_LINE)
    async with running_app(settings) as app:
        record = await hold_call(app.url, QUESTIONS, view(), SystemClock(), manners=HASTY)
    assert [turn.question.id for turn in record.turns] == ["q0", "q1", "q2"]
    answers = [turn.answer for turn in record.turns]
    assert [answer.status for answer in answers if answer] == [
        "completed",
        "cancelled",
        "completed",
    ]
    verdicts = {check.what: check for check in check_interruption(record)}
    del verdicts["the history holds exactly the heard words"]  # these answers have no words
    assert [check for check in verdicts.values() if not check.passed] == []
    for turn in record.turns:
        assert turn.timing is not None
        wait = record.time_of(turn.timing.audible_at)
        assert wait is not None
        assert turn.speech_until < wait < turn.speech_until + 5
    assert len(record.said) > 0
    assert abs(len(record.played) - len(record.said)) <= 960


async def test_a_server_that_detects_no_turns_cannot_be_talked_to() -> None:
    async with running_app(small_settings()) as app:
        with pytest.raises(DemoFailed, match="detects no turns"):
            await hold_call(app.url, QUESTIONS, view(), SystemClock(), manners=HASTY)


async def transcription(*events: object, pcm: bytes = b"12") -> tuple[str, FakeTransport]:
    """What comes of a transcription that the server answers with some events."""
    transport = FakeTransport(greeting())
    committed = transport.when(CommitAudio)

    async def open_transport() -> FakeTransport:
        return transport

    async with DuplexClient(open_transport) as call:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(transcribe(call, pcm))
            await committed.wait()
            transport.say(AudioCommitted(previous_item_id=None, item_id="i"))
            await asyncio.sleep(0)
            transport.say(*events)  # type: ignore[arg-type]
        return task.result(), transport


async def test_speech_is_transcribed_by_the_server_with_silence_after_it() -> None:
    text, transport = await transcription(transcribed("other", "no"), transcribed("i", "Yes."))
    assert text == "Yes."
    (append,) = transport.of(AppendAudio)
    assert isinstance(append, AppendAudio)
    assert append.audio.startswith(b"12\0\0")
    assert len(append.audio) > 2 * 24 * 300


async def test_speech_that_cannot_be_transcribed_is_nothing() -> None:
    error = TranscriptionError(type="server_error", code="stage_failed", message="no")
    text, _ = await transcription(TranscriptionFailed(item_id="i", error=error))
    assert text == ""
