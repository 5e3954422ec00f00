"""A recorded call as facts: who spoke when, what was sent, what of it was heard, where it was cut.

Read off the recording alone: events that clients got, and audio that came in. This module must not
know tables or pictures.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

from duologue.codecs.decoder import input_decoder
from duologue.commands.picture.palette import Floats, envelope
from duologue.core.audio import samples_to_ms
from duologue.engines.payloads import AudioChunk, VoiceActivity
from duologue.engines.ports import Ended, Outcome, Output
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import AudioFormat, OpusFormat
from duologue.protocol.commands import TruncateItem
from duologue.protocol.events import (
    AudioCommitted,
    ErrorEvent,
    Event,
    ItemTruncated,
    SessionCreated,
    SessionUpdated,
    SpeechStarted,
    SpeechStopped,
    TranscriptionCompleted,
)
from duologue.protocol.response_events import (
    AudioDelta,
    AudioTranscriptDelta,
    AudioTranscriptDone,
    OutputItemAdded,
    ResponseCreated,
    ResponseDone,
)
from duologue.sessions.effects import EndSession
from duologue.sessions.inputs import SessionInput
from duologue.sessions.recording.packing import unpack
from duologue.sessions.recording.recording import Recording, Step

DRAWN_HZ = 24_000
OPUS_BYTES_PER_S = 2_550
"""What our encoder makes: all that sizes alone tell of a duration."""

BARGE_IN = "turn_detected"


@dataclass(slots=True)
class Sound:
    """Audio at a place of the timeline, seconds since the call began.

    Args:
        levels: Loudness in steps of 10 ms, 0 to 1; empty where the recording has no content.
    """

    at_s: float
    length_s: float
    levels: Floats | None = None

    @property
    def until_s(self) -> float:
        """Its end."""
        return self.at_s + self.length_s


@dataclass(slots=True)
class Turn:
    """The person's turn. ``speech_from`` and ``speech_until`` are when its sound came in."""

    item_id: str
    speech_from: float
    started_at: float
    speech_until: float | None = None
    stopped_at: float | None = None
    committed_at: float | None = None
    transcribed_at: float | None = None
    transcript: str = ""


@dataclass(slots=True)
class Answer:
    """A response.

    Args:
        sounds: Its speech where it was heard, or would have been: what is sent plays behind what
            was sent before.
        made_s: Speech that the model made of it.
        cut_s: How much of the item was heard, by the last word on it; ``None``: nobody cut it.
        asked_by: The turn that it answers.
    """

    response_id: str
    created_at: float
    item_id: str = ""
    first_text_at: float | None = None
    first_audio_at: float | None = None
    done_at: float | None = None
    status: str = ""
    reason: str = ""
    transcript: str = ""
    sounds: list[Sound] = field(default_factory=list)
    made_s: float = 0.0
    cut_s: float | None = None
    cut_at: float | None = None
    cut_by_client: bool = False
    asked_by: Turn | None = None

    @property
    def sent_s(self) -> float:
        """Speech that was sent."""
        return sum(sound.length_s for sound in self.sounds)

    @property
    def heard_s(self) -> float:
        """Speech that was heard."""
        return self.sent_s if self.cut_s is None else min(self.cut_s, self.sent_s)

    @property
    def audible_at(self) -> float | None:
        """When its first sample was heard."""
        return self.sounds[0].at_s if self.sounds and self.heard_s > 0 else None

    @property
    def heard_until(self) -> float | None:
        """When its last heard sample was heard: with a cut, exactly there."""
        left_s = self.heard_s
        for sound in self.sounds:
            if left_s <= sound.length_s:
                return sound.at_s + left_s
            left_s -= sound.length_s
        return self.sounds[-1].until_s if self.sounds else None

    @property
    def interrupted(self) -> bool:
        """Whether somebody spoke over it and stopped it, or its client cut it."""
        return self.reason == BARGE_IN or self.cut_s is not None


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that went wrong."""

    at_s: float
    what: str


@dataclass(slots=True)
class Story:
    """The call.

    Args:
        caller: What came in, as it came.
        voice: Moments and what the detector thought of them, 0 to 1.
        waiting: Moments and the milliseconds of speech in the output buffer from then on.
        ahead: Corners of a line: seconds of speech that were sent and yet to be heard.
    """

    session_id: str
    model: str
    content: bool
    length_s: float = 0.0
    ended: str = ""
    caller: list[Sound] = field(default_factory=list)
    voice: list[tuple[float, float]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    waiting: list[tuple[float, int]] = field(default_factory=list)
    ahead: list[tuple[float, float]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def interruptions(self) -> list[tuple[Turn | None, Answer]]:
        """Answers that were cut, each with the turn that did it."""
        found = []
        for answer in self.answers:
            if answer.interrupted and answer.sounds:
                until = answer.done_at if answer.cut_at is None else answer.cut_at
                by = [
                    turn
                    for turn in self.turns
                    if until is None or answer.created_at < turn.started_at <= until + 1e-6
                ]
                found.append((by[-1] if by else None, answer))
        return found


def story_of(recording: Recording) -> Story:
    """Read the facts off a recording.

    Raises:
        CodecError: It holds something that this version does not know.
    """
    return _Reader(recording).read()


class _Reader:
    def __init__(self, recording: Recording) -> None:
        header = recording.header
        self._recording = recording
        self._story = Story(header.session_id, header.model, header.content)
        config = unpack(header.config)
        self._input_format: AudioFormat = config.input_format
        self._output_format: AudioFormat = config.output_format
        self._in = input_decoder(self._input_format, DRAWN_HZ)
        self._out = input_decoder(self._output_format, DRAWN_HZ)
        self._came_ms: list[float] = []
        self._came_at: list[float] = []
        self._busy_until = 0.0
        self._answers: dict[str, Answer] = {}
        self._items: dict[str, Answer] = {}
        self._turns: dict[str, Turn] = {}
        self._asked_cuts: dict[str, list[int]] = {}
        self._at = 0.0

    def read(self) -> Story:
        story = self._story
        waiting_ms = 0
        for step in self._recording.steps:
            if step.now:
                self._at = step.now - self._recording.header.now
            self._step(step)
            if step.waiting_ms != waiting_ms:
                waiting_ms = step.waiting_ms
                story.waiting.append((self._at, waiting_ms))
            if step.raised:
                story.faults.append(Fault(self._at, f"{step.call} raised {step.raised}"))
        if self._busy_until > 0:
            story.ahead.append((max(self._busy_until, self._at), 0.0))
        ends = [self._at, *(a.sounds[-1].until_s for a in story.answers if a.sounds)]
        story.length_s = max(ends)
        return story

    def _step(self, step: Step) -> None:
        effects = step.result[1] if step.call == "pull" and step.result else step.result
        # Most steps lead to nothing, and a recording has many.
        if effects and "EndSession" in str(effects):
            for effect in unpack(effects):
                if isinstance(effect, EndSession):
                    self._story.ended = effect.reason
        match step.call:
            case "apply":
                self._input(unpack(step.given)[0])
            case "pull" if step.result is not None:
                for event in unpack(step.result)[0]:
                    self._event(event)
            case _:
                pass

    def _input(self, item: SessionInput) -> None:
        match item:
            case AppendAudio(audio=audio):
                length_s = self._seconds(self._input_format, audio, self._in.seconds)
                levels = self._levels(self._in.decode, audio)
                before_ms = self._came_ms[-1] if self._came_ms else 0.0
                self._came_ms.append(before_ms + length_s * 1000)
                self._came_at.append(self._at)
                self._story.caller.append(Sound(self._at - length_s, length_s, levels))
            case Output(payload=VoiceActivity(probability=probability, end_sample=end)):
                end_ms = samples_to_ms(end, self._recording.header.input_rate_hz)
                self._story.voice.append((self._came(end_ms), probability))
            case Output(fence=fence, payload=AudioChunk(pcm=pcm, rate_hz=rate_hz)):
                if fence.lane in self._answers:
                    self._answers[fence.lane].made_s += len(pcm) / 2 / rate_hz
            case TruncateItem(item_id=item_id, audio_end_ms=end_ms):
                self._asked_cuts.setdefault(item_id, []).append(end_ms)
            case Ended(request_id=request_id, outcome=Outcome.FAILED, code=code):
                self._story.faults.append(Fault(self._at, f"request {request_id} failed: {code}"))
            case _:
                pass

    def _event(self, event: Event) -> None:
        story, at = self._story, self._at
        match event:
            case SessionCreated(session=session) | SessionUpdated(session=session):
                self._formats(session)
            case SpeechStarted(item_id=item_id, audio_start_ms=start_ms):
                turn = self._turns[item_id] = Turn(item_id, self._came(start_ms), at)
                story.turns.append(turn)
            case SpeechStopped(item_id=item_id, audio_end_ms=end_ms):
                turn = self._turn(item_id)
                turn.speech_until, turn.stopped_at = self._came(end_ms), at
            case AudioCommitted(item_id=item_id):
                self._turn(item_id).committed_at = at
            case TranscriptionCompleted(item_id=item_id, transcript=transcript):
                turn = self._turn(item_id)
                turn.transcribed_at, turn.transcript = at, transcript
            case ErrorEvent(error=error):
                story.faults.append(Fault(at, f"the client was told {error.code or error.type}"))
            case ResponseCreated(response=response):
                answer = Answer(response.id, at, asked_by=self._asked(at))
                self._answers[response.id] = answer
                story.answers.append(answer)
            case OutputItemAdded(response_id=response_id, item=item):
                if (made := self._answers.get(response_id)) is not None and not made.item_id:
                    made.item_id = item.id
            case AudioDelta():
                self._delta(event)
            case AudioTranscriptDelta(response_id=response_id):
                if (made := self._answers.get(response_id)) is not None:
                    made.first_text_at = made.first_text_at or at
            case AudioTranscriptDone(response_id=response_id, transcript=text):
                if (made := self._answers.get(response_id)) is not None:
                    made.transcript = text
            case ResponseDone(response=response):
                self._done(response.id, response.status, response.status_details)
            case ItemTruncated(item_id=item_id, audio_end_ms=end_ms):
                self._cut(item_id, end_ms)
            case _:
                pass

    def _cut(self, item_id: str, end_ms: int) -> None:
        """Move a cut as the ledger does: the client's word replaces ours, and only shrinks."""
        answer = self._items.get(item_id)
        if answer is None:
            return
        asked = self._asked_cuts.get(item_id, [])
        if end_ms in asked:
            asked.remove(end_ms)
            known = answer.cut_s if answer.cut_by_client and answer.cut_s is not None else math.inf
            answer.cut_s, answer.cut_by_client = min(known, end_ms / 1000), True
        elif not answer.cut_by_client:
            answer.cut_s = end_ms / 1000
        answer.cut_at = answer.cut_at or self._at
        # What would have played behind it does not.
        self._plays_until(min(self._busy_until, self._at))

    def _delta(self, event: AudioDelta) -> None:
        answer = self._answers.get(event.response_id)
        if answer is None:
            return
        answer.item_id = answer.item_id or event.item_id
        self._items[event.item_id] = answer
        answer.first_audio_at = answer.first_audio_at or self._at
        length_s = self._seconds(self._output_format, event.delta, self._out.seconds)
        start = max(self._busy_until, self._at)
        self._plays_until(start + length_s)
        levels = self._levels(self._out.decode, event.delta)
        answer.sounds.append(Sound(start, length_s, levels))

    def _plays_until(self, until: float) -> None:
        """From now on, what was sent will have been heard at another time."""
        ahead = self._story.ahead
        if self._busy_until < self._at and ahead and ahead[-1][1] > 0:
            ahead.append((self._busy_until, 0.0))
        ahead.append((self._at, max(0.0, self._busy_until - self._at)))
        ahead.append((self._at, max(0.0, until - self._at)))
        self._busy_until = until

    def _done(self, response_id: str, status: str, details: object) -> None:
        answer = self._answers.get(response_id)
        if answer is None:
            return
        answer.done_at, answer.status = self._at, status
        answer.reason = getattr(details, "reason", None) or ""
        if status == "failed":
            code = getattr(getattr(details, "error", None), "code", None) or answer.reason
            self._story.faults.append(Fault(self._at, f"response {response_id} failed: {code}"))

    def _formats(self, session: object) -> None:
        """Note the formats in force; each change begins a new stream."""
        audio = getattr(session, "audio", None)
        heard = getattr(getattr(audio, "input", None), "format", self._input_format)
        said = getattr(getattr(audio, "output", None), "format", self._output_format)
        if isinstance(heard, AudioFormat) and heard != self._input_format:
            self._input_format, self._in = heard, input_decoder(heard, DRAWN_HZ)
        if isinstance(said, AudioFormat) and said != self._output_format:
            self._output_format, self._out = said, input_decoder(said, DRAWN_HZ)

    def _turn(self, item_id: str) -> Turn:
        if item_id not in self._turns:
            turn = self._turns[item_id] = Turn(item_id, self._at, self._at)
            self._story.turns.append(turn)
        return self._turns[item_id]

    def _asked(self, at: float) -> Turn | None:
        """The latest turn that had ended, unless an answer has it already."""
        ended = [turn for turn in self._story.turns if turn.committed_at is not None]
        if not ended or any(answer.asked_by is ended[-1] for answer in self._story.answers):
            return None
        return ended[-1]

    def _came(self, position_ms: float) -> float:
        """When the person's audio at a position came in."""
        index = bisect_left(self._came_ms, position_ms)
        if index >= len(self._came_ms):
            return self._at
        return self._came_at[index] - (self._came_ms[index] - position_ms) / 1000

    def _seconds(
        self, audio_format: AudioFormat, audio: bytes, exact: Callable[[bytes], float]
    ) -> float:
        if isinstance(audio_format, OpusFormat) and not self._story.content:
            return len(audio) / OPUS_BYTES_PER_S
        return exact(audio)

    def _levels(self, decode: Callable[[bytes], bytes], audio: bytes) -> Floats | None:
        if not self._story.content:
            return None
        return envelope(decode(audio), DRAWN_HZ)
