"""Listening: from the microphone to turns and transcripts.

Owns the input audio, the person's floor, and the detector and recogniser requests of the input
lane. This module must not know responses: whether a turn interrupts one is decided elsewhere,
which then calls ``confirm`` or ``abandon``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from duologue.codecs.pcm import is_loud
from duologue.core.audio import SAMPLE_BYTES, AudioFrame, ms_to_samples, samples_to_ms
from duologue.core.errors import ProtocolError
from duologue.core.ids import IdMaker
from duologue.engines.payloads import AudioChunk, EndOfTurn, Transcript, VoiceActivity
from duologue.protocol.errors import ErrorCode
from duologue.protocol.limits import MIN_COMMIT_MS
from duologue.protocol.session_config import SemanticVad, ServerVad, SessionConfig
from duologue.sessions.hearing.floor import FloorEvent, FloorPolicy, FloorState, UserFloor
from duologue.sessions.hearing.input_audio import InputAudio
from duologue.sessions.hearing.item_speech import ItemSpeech
from duologue.sessions.hearing.transcription import Transcriber, TranscriptReady
from duologue.sessions.requests import Asker, Requests
from duologue.sessions.settings import ListeningSettings

KEPT_SILENCE_MS = 1000
"""While nobody speaks, so much of what the detector has judged is kept besides the padding."""

END_OF_TURN_AUDIO_MS = 8000
"""The end-of-turn model looks at no more than this."""

REOPEN_AFTER_MS = 2000
"""A detector that failed is tried again after so much audio, not at every frame."""

DETECTOR_LAG_MS = 3000
"""A detector that is not further behind is well: in long quiet it reports once a second."""

LEAST_DETECTED_MS = 1
"""A detector gets less than this together with what comes next, however small the messages are."""

SEMANTIC_POLICIES: dict[str, tuple[float, int]] = {
    "high": (0.35, 700),
    "auto": (0.5, 1200),
    "medium": (0.5, 1200),
    "low": (0.7, 2500),
}
"""By eagerness: the probability that ends a turn, and the silence that ends it anyway (ms)."""


@dataclass(slots=True)
class PersonTurn:
    """The turn that is going on.

    Args:
        confirmed: Clients and plugin know of it; before that it may still be a cough.
        retried: A lost recogniser was replaced once already.
    """

    item_id: str
    start_sample: int
    confirmed: bool = False
    retried: bool = False


@dataclass(frozen=True, slots=True)
class Utterance:
    """A committed turn: its audio span, and its transcript where that is known already.

    Args:
        recording: What is in the span, where the plugin hears turns.
    """

    item_id: str
    start_sample: int
    end_sample: int
    transcript: TranscriptReady | None
    transcribing: bool
    recording: AudioFrame | None = None


class Listening:
    """Everything about hearing the person, for one session.

    Args:
        transcribe_always: The plugin reads transcripts, whether or not the client does.
        partials_always: It also reads them while the person speaks.
        retain: Keep audio for commits.
        records: Turns are committed with what was said in them.
        rate_hz: Rate of the session's sample clock.
    """

    __slots__ = (
        "_behind_since",
        "_detector_lag",
        "_judged_until",
        "_kept_silence",
        "_least_bytes",
        "_new_id",
        "_partials",
        "_partials_always",
        "_rate_hz",
        "_records",
        "_reopen_at",
        "_reported",
        "_requests",
        "_taken_until",
        "_transcribe_always",
        "_transcriber",
        "_transcribing",
        "_unheard",
        "audio",
        "detecting",
        "floor",
        "items",
        "settings",
        "turn",
    )

    def __init__(
        self,
        settings: ListeningSettings,
        config: SessionConfig,
        requests: Requests,
        new_id: IdMaker,
        *,
        rate_hz: int,
        capacity_ms: int,
        retain: bool,
        transcribe_always: bool,
        partials_always: bool = False,
        records: bool = False,
    ) -> None:
        self.audio = InputAudio(config.input_format, rate_hz, capacity_ms, retain=retain)
        self.floor = UserFloor(FloorPolicy(), rate_hz)
        self.turn: PersonTurn | None = None
        self.settings = settings
        self._requests = requests
        self._new_id = new_id
        self._rate_hz = rate_hz
        self._records = records
        self._transcribe_always = transcribe_always
        self._partials_always = partials_always
        self._partials = partials_always
        self.detecting = False
        """Turns are found by a detector, not committed by hand."""

        self._reopen_at = 0
        self._judged_until = 0
        self._behind_since: float | None = None
        self._taken_until = 0
        self._reported = False
        self._kept_silence = 0
        self._detector_lag = ms_to_samples(DETECTOR_LAG_MS, rate_hz)
        self._least_bytes = ms_to_samples(LEAST_DETECTED_MS, rate_hz) * SAMPLE_BYTES
        self._unheard = b""
        self._transcriber = Transcriber(requests, settings.asr or "", rate_hz, settings.partial_ms)
        self.items = ItemSpeech(self._transcriber, rate_hz, capacity_ms)
        """Speech that comes inside items."""

        self.configure(config)

    @property
    def has_recogniser(self) -> bool:
        """Speech can be turned into words here."""
        return self.settings.asr is not None

    @property
    def detector_runs(self) -> bool:
        """A detector is at work on what comes in."""
        return self._requests.find(Asker.DETECTOR, "") is not None

    @property
    def speech_ms(self) -> int:
        """Speech in the current turn so far, without pauses."""
        return samples_to_ms(self.floor.voiced_samples, self._rate_hz)

    def audio_ms(self) -> int:
        """Return how many milliseconds of the person's audio have come in."""
        return samples_to_ms(self.audio.next_sample, self.audio.rate_hz)

    def onset_ms(self) -> int:
        """Return where in the person's audio the newest speech began, without its padding."""
        return samples_to_ms(self.floor.onset_sample, self.audio.rate_hz)

    def configure(self, config: SessionConfig) -> None:
        """Use another configuration from the next frame on."""
        self.audio.set_format(config.input_format)
        detection = config.turn_detection
        self._transcribing = self.settings.asr is not None and (
            self._transcribe_always or config.transcription is not None
        )
        # They cost as much as all the rest of recognition: none is made that nobody reads.
        self._partials = self._partials_always or config.transcription is not None
        was_detecting = self.detecting
        self.detecting = detection is not None and self.settings.vad is not None
        if detection is not None:
            policy = self._floor_policy(detection)
            self.floor.set_policy(policy)
            self._kept_silence = ms_to_samples(policy.prefix_ms + KEPT_SILENCE_MS, self._rate_hz)
        if was_detecting and not self.detecting:
            self._requests.cancel(Asker.DETECTOR, "")
            self.abandon()

    def append(self, wire: bytes) -> AudioFrame | None:
        """Take audio from the client and hand it to whoever listens.

        Raises:
            LimitExceeded: The buffer is full; nothing changed.
        """
        frame = self.audio.append(wire)
        if frame is None:
            return None
        if self.detecting:
            self._detect(frame)
            if self.detector_runs and self.turn is None and self.floor.state is FloorState.SILENT:
                unneeded = self._judged_until - self._kept_silence
                if self.floor.goes_on_from is not None:
                    unneeded = min(unneeded, self.floor.goes_on_from)
                self.audio.drop_before(unneeded)
        if self.turn is not None and self.turn.confirmed:
            # In silence there is nothing new to tell, and the final of a turn that is over would
            # have to wait for it.
            wanted = self._partials and self.floor.is_voiced
            self._transcriber.append(self.turn.item_id, frame, wanted=wanted)
        return frame

    def watch_detector(self, now: float) -> None:
        """Give up a detector that hangs: its worker is replaced, and another one tried."""
        lag = self.audio.next_sample - self._judged_until
        if not self.detecting or lag <= self._detector_lag:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = now
        elif now >= self._behind_since + self.settings.detector_timeout_s:
            self._requests.cancel(Asker.DETECTOR, "")
            self.detector_failed(ErrorCode.STAGE_TIMEOUT)

    def on_activity(self, activity: VoiceActivity) -> Sequence[FloorEvent]:
        """Take a detector window."""
        self._judged_until = activity.end_sample
        self._behind_since = None
        self._reported = False
        return self.floor.on_window(activity.probability, activity.end_sample)

    def on_end_of_turn(self, judged: EndOfTurn) -> Sequence[FloorEvent]:
        """Take the end-of-turn model's answer."""
        return self.floor.on_end_of_turn(judged.probability, judged.end_sample)

    def on_transcript(self, item_id: str, transcript: Transcript) -> TranscriptReady | None:
        """Take an answer of the recogniser."""
        return self._transcriber.on_transcript(item_id, transcript)

    def begin(self, start_sample: int) -> PersonTurn:
        """A turn may have begun; nobody is told before ``confirm``."""
        self.turn = PersonTurn(self._new_id("item"), max(start_sample, self.audio.start_sample))
        return self.turn

    def confirm(self, turn: PersonTurn) -> None:
        """It is a turn: the recogniser gets it from its start."""
        turn.confirmed = True
        if self._transcribing:
            self._transcriber.begin(turn.item_id, self.audio.read(turn.start_sample))

    def pause(self, end_sample: int) -> None:
        """The turn may be over: have it transcribed on speculation."""
        if self.turn is not None and self.turn.confirmed:
            self._transcriber.pause(self.turn.item_id, end_sample)

    def resume(self) -> None:
        """The turn goes on."""
        if self.turn is not None and self.turn.confirmed:
            self._transcriber.resume(self.turn.item_id)

    def ask_end_of_turn(self, sample: int) -> None:
        """Have the end-of-turn model judge the turn up to ``sample``."""
        if self.turn is None or self.settings.end_of_turn is None:
            return
        earliest = sample - ms_to_samples(END_OF_TURN_AUDIO_MS, self._rate_hz)
        audio = self.audio.read(max(self.turn.start_sample, earliest), sample)
        self._requests.open(
            Asker.END_OF_TURN,
            "",
            self.settings.end_of_turn,
            first=AudioChunk(audio.pcm, audio.rate_hz, audio.start_sample),
        )

    def commit(self, end_sample: int) -> Utterance:
        """Close the current turn at ``end_sample`` (a turn that the floor has ended)."""
        assert self.turn is not None
        turn, self.turn = self.turn, None
        self._requests.cancel(Asker.END_OF_TURN, "")
        if self._transcribing and turn.item_id not in self._transcriber:
            self._transcriber.begin(turn.item_id, self.audio.read(turn.start_sample, end_sample))
        transcript = self._transcriber.commit(turn.item_id, end_sample)
        recording = self.audio.read(turn.start_sample, end_sample) if self._records else None
        self.audio.drop_before(end_sample)
        # What is left is the silence that ended the turn: padding of the next one, no turn itself.
        self._taken_until = self.audio.next_sample
        if self.floor.goes_on_from is not None:
            self._taken_until = self.floor.goes_on_from
        return Utterance(
            turn.item_id,
            turn.start_sample,
            end_sample,
            transcript,
            self._transcribing,
            recording,
        )

    def holds_speech(self) -> bool:
        """Tell whether somebody speaks, or may have: what the detector has not judged is loud."""
        if self.turn is not None:
            return True
        start = max(self.audio.start_sample, self._taken_until)
        if self.detector_runs:
            start = max(start, self._judged_until)
        unjudged = self.audio.read(start)
        return samples_to_ms(unjudged.samples, self._rate_hz) >= MIN_COMMIT_MS and is_loud(
            unjudged.pcm, self._rate_hz
        )

    def commit_all(self) -> Utterance:
        """Close a turn by hand: all audio that is buffered.

        Raises:
            ProtocolError: There is less than ``MIN_COMMIT_MS`` of it; it stays buffered.
        """
        start = max(self.audio.start_sample, self._taken_until)
        if self.turn is not None:
            start = self.turn.start_sample
        held = self.audio.next_sample - start + self.audio.pending_samples
        held_ms = samples_to_ms(held, self._rate_hz)
        if held_ms < MIN_COMMIT_MS:
            raise ProtocolError(
                f"the buffer holds {held_ms} ms of audio, "
                f"a commit needs at least {MIN_COMMIT_MS} ms",
                code="input_audio_buffer_commit_empty",
            )
        turn = self.turn or self.begin(start)
        if not turn.confirmed:
            self.confirm(turn)
        # The client decides where its utterance ends, also within a sample.
        self.audio.end_utterance()
        self.floor.abandon(self.audio.next_sample)
        return self.commit(self.audio.next_sample)

    def take_silence(self, length_ms: int) -> tuple[str, tuple[int, int]]:
        """Close an empty turn: nobody has spoken for ``length_ms``.

        Returns:
            The id that its item is to have, and from where to where it goes, in milliseconds.
        """
        end = self.audio.next_sample
        # Padding of the next turn, but no turn itself.
        self._taken_until = end
        end_ms = samples_to_ms(end, self._rate_hz)
        return self._new_id("item"), (max(0, end_ms - length_ms), end_ms)

    def abandon(self) -> None:
        """The current turn is none: a cough, or the client cleared the buffer."""
        if self.turn is not None:
            self._transcriber.drop(self.turn.item_id)
            self.turn = None
        self._requests.cancel(Asker.END_OF_TURN, "")
        self.floor.abandon()

    def clear(self) -> None:
        """Forget all uncommitted audio."""
        self.abandon()
        self.floor.abandon(self.audio.next_sample)
        self.audio.end_utterance()
        self.audio.drop_before(self.audio.next_sample)

    def recogniser_ended(self, item_id: str, code: str) -> bool:
        """A recogniser request ended early; tells whether a committed turn stays without text.

        The turn that is going on is given to another recogniser, once.
        """
        if item_id in self._transcriber:
            self._requests.report(Asker.TRANSCRIBER, code or ErrorCode.STAGE_FAILED)
        # Speech of an item has been committed from the first.
        if self._transcriber.failed(item_id) | self.items.drop(item_id):
            return True
        turn = self.turn
        if turn is not None and turn.item_id == item_id and turn.confirmed and not turn.retried:
            turn.retried = True
            self._transcriber.begin(item_id, self.audio.read(turn.start_sample))
        return False

    def give_up_transcript(self, item_id: str) -> None:
        """Wait no longer for the transcript of a committed turn."""
        self.items.drop(item_id)
        self._transcriber.drop(item_id)

    def detector_failed(self, code: str) -> None:
        """The detector's request ended early: try another one after a while."""
        if not self._reported:
            # Once for each that ever said anything, not each time that another one is tried.
            self._reported = True
            self._requests.report(Asker.DETECTOR, code or ErrorCode.STAGE_FAILED)
        self._judged_until = self.audio.next_sample
        self._behind_since = None
        self._reopen_at = self.audio.next_sample + ms_to_samples(REOPEN_AFTER_MS, self._rate_hz)

    def _detect(self, frame: AudioFrame) -> None:
        request = self._requests.find(Asker.DETECTOR, "")
        if request is None:
            if frame.start_sample < self._reopen_at or self.settings.vad is None:
                return
            request = self._requests.open(Asker.DETECTOR, "", self.settings.vad, more_input=True)
            self._judged_until = frame.start_sample
            self._unheard = b""
        pcm, start = frame.pcm, frame.start_sample
        if self._unheard:
            start -= len(self._unheard) // SAMPLE_BYTES
            pcm = self._unheard + pcm
            self._unheard = b""
        if len(pcm) < self._least_bytes:
            self._unheard = pcm
            return
        self._requests.append(request, AudioChunk(pcm, frame.rate_hz, start))

    def _floor_policy(self, detection: ServerVad | SemanticVad) -> FloorPolicy:
        settings = self.settings
        if isinstance(detection, ServerVad):
            return FloorPolicy(
                threshold=detection.threshold,
                release=max(0.05, detection.threshold - 0.15),
                onset_ms=settings.onset_ms,
                pause_ms=min(settings.pause_ms, detection.silence_duration_ms),
                silence_ms=detection.silence_duration_ms,
                prefix_ms=detection.prefix_padding_ms,
                max_turn_ms=settings.max_turn_ms,
            )
        end_threshold, silence_ms = SEMANTIC_POLICIES[detection.eagerness]
        return FloorPolicy(
            onset_ms=settings.onset_ms,
            pause_ms=settings.pause_ms,
            silence_ms=silence_ms,
            check_ms=settings.check_ms,
            earliest_ms=settings.earliest_ms,
            end_threshold=end_threshold,
            max_turn_ms=settings.max_turn_ms,
        )
