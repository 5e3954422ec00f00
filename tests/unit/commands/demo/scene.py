"""A call that went well, as the demonstration records it; tests spoil it."""

from __future__ import annotations

from duologue.clients.playback import RATE_HZ, Taken
from duologue.clients.timing import TurnTiming
from duologue.commands.demo.questions import Question
from duologue.commands.demo.record import AnswerRecord, CallRecord, CallRecorder, TurnRecord
from tests.fakes.talking_gateway import speech

FRAME = 480
STARTED_AT = 1000.0

QUESTIONS = (
    ("What is the capital of France?", (("paris",),), "The capital of France is Paris."),
    (
        "What should I cook?",
        (("pasta",),),
        "You could cook pasta with tomato sauce and basil.",
    ),
    ("How many days are in a week?", (("seven",),), "There are 7 days in a week."),
)
HEARD = "You could cook pasta"
HEARD_MS = 1000


def question(number: int) -> Question:
    text, keywords, _ = QUESTIONS[number]
    return Question(f"q{number}", text, keywords, speech(1000), 0.1, 0.9)


def good_call() -> CallRecord:
    """Three questions at 0.5, 5.0 and 8.0 s; the second answer plays from 7.0 to 8.0 s."""
    recorder = CallRecorder(FRAME)
    record = recorder.record
    record.started_at = STARTED_AT
    record.model = "duologue"
    plan = {"a0": (2.5, 1500), "a1": (7.02, HEARD_MS), "a2": (10.5, 1500)}
    said = {0.5: 0, 5.0: 1, 7.6: 2}
    tone, voice = speech(1000), speech(2000, 330)
    for index in range(650):
        now = index * 0.02
        mic = bytes(2 * FRAME)
        for start in said:
            offset = round((now - start) / 0.02)
            if 0 <= offset < 50:
                mic = tone[offset * 2 * FRAME : (offset + 1) * 2 * FRAME]
        taken = Taken(bytes(2 * FRAME), ((None, FRAME),))
        for item_id, (start, length_ms) in plan.items():
            offset = round((now - start) / 0.02)
            if 0 <= offset < length_ms // 20:
                pcm = voice[offset * 2 * FRAME : (offset + 1) * 2 * FRAME]
                taken = Taken(pcm, ((item_id, FRAME),))
        recorder.on_frame(mic, taken)
    for number, asked_at in enumerate(said):
        answer = AnswerRecord(
            f"r{number}",
            item_id=f"a{number}",
            status="completed",
            transcript=QUESTIONS[number][2],
            arrived=voice,
            history=QUESTIONS[number][2],
            transcribed=QUESTIONS[number][2],
        )
        record.answers[answer.response_id] = answer
        turn = TurnRecord(question(number), asked_at, QUESTIONS[number][0], answer=answer)
        until = STARTED_AT + turn.speech_until
        turn.timing = TurnTiming(
            f"q{number}",
            speech_from=STARTED_AT + asked_at,
            speech_until=until,
            confirmed_at=STARTED_AT + asked_at + 0.4,
            end_of_turn_at=until + 0.3,
            transcribed_at=until + 0.4,
            response_id=answer.response_id,
            first_text_at=until + 0.9,
            first_audio_at=until + 1.0,
            audible_at=until + 1.1,
        )
        record.turns.append(turn)
    cut = record.answers["r1"]
    cut.status, cut.interrupted = "cancelled", True
    cut.truncated_ms = [980, HEARD_MS]
    cut.history = cut.transcribed = HEARD
    timing = record.turns[2].timing
    assert timing is not None
    timing.confirmed_at = STARTED_AT + 8.02
    assert RATE_HZ == FRAME * 50
    return record
