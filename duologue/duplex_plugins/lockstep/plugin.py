"""The policy of a model that hears and speaks a frame at every tick, for as long as the call lasts.

It decides itself when to speak. This module makes answers of its frames: one begins when it says
something and ends when it pauses. After an interruption the model goes on, since it heard it, and
what it says is held until it pauses by itself: its unfinished sentence is not continued.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from duologue.core.audio import SAMPLE_BYTES, AudioFrame
from duologue.duplex_plugins.contract import (
    AppendToRequest,
    AudienceChanged,
    Audio,
    BeginResponse,
    Capabilities,
    ConfigChanged,
    EndResponse,
    Interrupted,
    PluginConfig,
    PluginEffect,
    PluginInput,
    RequestEnded,
    RequestFailed,
    RequestOutput,
    ResponseOutcome,
    ResponseRequested,
    SayAudio,
    SayText,
    StartRequest,
    StopRequest,
)
from duologue.duplex_plugins.lockstep.loudness import Loudness
from duologue.duplex_plugins.lockstep.replay_log import ReplayLog
from duologue.duplex_plugins.lockstep.settings import LockstepSettings
from duologue.duplex_plugins.lockstep.stuck_check import StuckCheck
from duologue.duplex_plugins.persona import Persona
from duologue.duplex_plugins.stream_noted import StreamNoted
from duologue.engines.payloads import (
    AudioChunk,
    LockstepFrame,
    LockstepFreeze,
    LockstepNews,
    LockstepRewind,
    LockstepStart,
    LockstepTaste,
    SpeechMark,
)

STREAM = "stream"
STUCK = "stream_stuck"
UNSUPPORTED = "unsupported"

TOLD_AGAIN = 0.9
"""A client is told of a model that remembers less when it is less than so much of the last time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockstepModel:
    """What a model is, apart from its policy.

    Args:
        pipeline: Takes ``LockstepStart`` and audio, gives ``LockstepFrame``.
        voices: The first is the default; the model is given the name.
        reads_instructions: It can be told who to be.
        pins_persona: What it was told stays in sight when its window slides.
        window_frames: How many frames it sees.
    """

    pipeline: str
    rate_hz: int = 24_000
    frame_samples: int = 1920
    voices: tuple[str, ...] = ("default",)
    reads_instructions: bool = False
    pins_persona: bool = False
    window_frames: int = 3000


@dataclass(slots=True)
class Answer:
    """What is said in one response.

    Args:
        waited: Frames without a word since the client asked for it.
        first_frame: The frame it begins with; ``None``: nothing was said yet.
        frames: So many, in a row.
    """

    response_id: str
    waited: int = 0
    first_frame: int | None = None
    frames: int = 0
    samples: int = 0
    characters: int = 0
    quiet: int = 0


@dataclass(slots=True)
class State:
    """One session.

    Args:
        configured: The client has said what it wants.
        unheard_ms: Audio that was let pass before.
        running: The stream was started and has not failed.
        answer: Being said; ``last``: was said last, and may yet be cut.
        proven: It has given a frame.
        broken: It could not be started, or was lost too often: only a client that asks for an
            answer makes us try again.
        beginning: A response was asked for this frame; ``failure``: for one that fails.
        held: Frames for which what is said is held yet; 0: it is not held.
        paused: Frames of the pause so far, while it is held.
        spoke: Something was said in this call.
        taste: How daring the stream is, as it was told.
        sees_frames: How far back the model sees, as the client knows.
    """

    log: ReplayLog
    stuck_check: StuckCheck
    config: PluginConfig | None = None
    configured: bool = False
    unheard_ms: float = 0.0
    running: bool = False
    proven: bool = False
    broken: bool = False
    audience: bool = True
    answer: Answer | None = None
    last: Answer | None = None
    beginning: LockstepFrame | None = None
    failure: str = ""
    held: int = 0
    paused: int = 0
    rewinds: int = 0
    sees_frames: int = 0
    taste: LockstepTaste | None = None
    restarts: int = 0
    spoke: bool = False


class LockstepPlugin:
    """The policy for one model.

    Args:
        model: What it is.
        settings: How it behaves.
    """

    def __init__(self, model: LockstepModel, settings: LockstepSettings) -> None:
        self._model = model
        self._settings = settings
        self._loudness = Loudness(settings.quiet_dbfs)
        self._end_frames = self._frames(settings.end_ms)
        self._pause_frames = self._frames(settings.pause_ms)
        self._hold_frames = self._frames(settings.hold_ms)
        self._answer_frames = self._frames(settings.answer_ms)

    def capabilities(self) -> Capabilities:
        """It hears, decides when to speak, and is never far ahead of what was heard of it."""
        model, settings = self._model, self._settings
        return Capabilities(
            input_rate_hz=model.rate_hz,
            output_rate_hz=model.rate_hz,
            hears_audio=True,
            decides_turns=True,
            frame_ms=model.frame_samples * 1000 // model.rate_hz,
            lead_ms=settings.lead_ms,
            backlog_ms=settings.backlog_ms,
            voices=model.voices,
            persona=Persona(reads_instructions=model.reads_instructions, stays=True, sampling=True),
            resident=model.pipeline,
        )

    def open(self, config: PluginConfig) -> State:
        """Nothing runs before the person is heard, or an answer is asked for."""
        return State(ReplayLog(self._model.window_frames), self._stuck_check())

    def step(self, state: State, item: PluginInput) -> Sequence[PluginEffect]:
        """Hand audio on, and make answers of what comes back."""
        if not isinstance(item, ResponseRequested):
            # What was not granted at once is not granted at all.
            state.beginning, state.failure = None, ""
        match item:
            case RequestOutput(payload=LockstepFrame() as frame):
                return self._frame(state, frame)
            case RequestOutput(payload=LockstepNews() as news):
                return [self._noted(state, news)]
            case Audio(frame=heard):
                if not state.audience or self._waits(state, heard):
                    return ()
                chunk = AudioChunk(heard.pcm, heard.rate_hz, heard.start_sample)
                return [*self._ensure_running(state), *_append(state, chunk)]
            case ResponseRequested():
                return self._requested(state, item)
            case Interrupted():
                return self._interrupted(state, item)
            case ConfigChanged(config=config, by_client=by_client):
                state.configured = by_client
                return self._configured(state, config)
            case AudienceChanged(present=present):
                state.audience = present
                return _append(state, LockstepFreeze(not present))
            case RequestFailed(code=code):
                return self._lost(state, code)
            case RequestEnded():
                return self._lost(state, "stage_failed")
            case _:
                return ()

    # What the model says

    def _frame(self, state: State, frame: LockstepFrame) -> list[PluginEffect]:
        if frame.rewinds < state.rewinds:
            return []  # taken back while it was on its way
        state.proven = True
        state.log.add(frame)
        quiet = not frame.text and self._loudness.is_quiet(frame.pcm)
        if state.stuck_check.is_stuck(frame, quiet=quiet):
            return self._restart(state, STUCK, keeps_context=False)
        if state.held and not self._released(state, quiet):
            return []
        answer = state.answer
        if answer is None:
            if quiet:
                return []
            # It waits there for the grant, our next input: ``_requested`` says it in the response.
            state.beginning = frame
            return [BeginResponse()]
        return self._say(state, answer, frame, quiet)

    def _released(self, state: State, quiet: bool) -> bool:
        """Tell whether what is said from this frame on is no part of what was interrupted."""
        state.paused = state.paused + 1 if quiet else 0
        state.held -= 1
        if state.paused >= self._pause_frames:
            state.held = 0
        return state.held == 0

    def _say(
        self, state: State, answer: Answer, frame: LockstepFrame, quiet: bool
    ) -> list[PluginEffect]:
        if answer.first_frame is None:
            if quiet:
                answer.waited += 1
                return self._end(state) if answer.waited >= self._answer_frames else []
            answer.first_frame = frame.number
        state.spoke = True
        answer.frames += 1
        answer.samples += len(frame.pcm) // SAMPLE_BYTES
        answer.quiet = answer.quiet + 1 if quiet else 0
        effects: list[PluginEffect] = []
        marks: tuple[SpeechMark, ...] = ()
        text = frame.text if answer.characters else frame.text.lstrip()
        if text:
            answer.characters += len(text)
            marks = (SpeechMark(answer.characters, answer.samples),)
            effects.append(SayText(answer.response_id, text))
        effects.append(SayAudio(answer.response_id, frame.pcm, marks))
        if answer.quiet >= self._end_frames:
            effects += self._end(state)
        return effects

    def _end(
        self,
        state: State,
        outcome: ResponseOutcome = ResponseOutcome.COMPLETED,
        reason: str = "",
    ) -> list[PluginEffect]:
        answer, state.answer = state.answer, None
        if answer is None:
            return []
        state.last = answer
        ended = EndResponse(answer.response_id, outcome, reason)
        return [ended, *self._dare_as_configured(state)]

    def _dare_as_configured(self, state: State) -> list[PluginEffect]:
        """What a client asked for in one answer ends with it."""
        return self._dare(state, None if state.config is None else state.config.temperature)

    def _noted(self, state: State, news: LockstepNews) -> StreamNoted:
        model = self._model
        seen, told = news.sees_frames or model.window_frames, state.sees_frames
        # It goes page by page: not every one is worth a word.
        if seen >= told * TOLD_AGAIN and (seen < model.window_frames or told == seen):
            return StreamNoted(news.counts)
        state.sees_frames = seen
        return StreamNoted(news.counts, seen * model.frame_samples * 1000 // model.rate_hz)

    # What the session says

    def _requested(self, state: State, request: ResponseRequested) -> list[PluginEffect]:
        response_id = request.response_id
        if request.out_of_band:
            return [EndResponse(response_id, ResponseOutcome.FAILED, UNSUPPORTED)]
        # What we asked for it with, in ``_frame`` or ``_lost``; neither, where a client asked.
        begun, failure = state.beginning, state.failure
        state.beginning, state.failure = None, ""
        if failure:
            return [EndResponse(response_id, ResponseOutcome.FAILED, failure)]
        state.answer = Answer(response_id)
        if begun is not None:
            return self._say(state, state.answer, begun, quiet=False)
        state.broken = False
        started = self._ensure_running(state)
        return [*started, *self._dare(state, request.config.temperature)]

    def _interrupted(self, state: State, item: Interrupted) -> list[PluginEffect]:
        answer = state.answer
        if answer is not None and answer.response_id == item.response_id:
            state.last, state.answer = answer, None
            if answer.first_frame is not None:
                state.held, state.paused = self._hold_frames, 0
        effects = self._dare_as_configured(state) if state.answer is None else []
        if item.cut_sample is None or not self._settings.rewind:
            return effects
        last = state.last
        if last is None or last.response_id != item.response_id or state.answer is not None:
            return effects  # something else has been said since, and was heard
        return [*effects, *self._rewind(state, last, item.cut_sample)]

    def _rewind(self, state: State, answer: Answer, cut_sample: int) -> list[PluginEffect]:
        """Let the model forget what nobody heard; a frame that was begun counts as heard."""
        if answer.first_frame is None or cut_sample >= answer.samples:
            return []
        heard = -(-cut_sample // self._model.frame_samples)
        number = answer.first_frame + heard
        if heard >= answer.frames:
            return []
        answer.frames, answer.samples = heard, min(answer.samples, cut_sample)
        state.rewinds += 1
        state.held, state.beginning = 0, None
        state.log.take_back(number)
        return _append(state, LockstepRewind(number))

    def _configured(self, state: State, config: PluginConfig) -> list[PluginEffect]:
        before, state.config = state.config, config
        if before is None:
            return []
        started = replace(
            self._start(before), temperature=config.temperature, top_k=config.draws.top_k
        )
        # What it is, it is told in the beginning: once it has spoken it stays who it is.
        if started != self._start(config) and state.running and not state.spoke:
            state.log.clear()
            return self._restart(state, "", keeps_context=False)
        return self._dare(state, config.temperature) if state.answer is None else []

    def _dare(self, state: State, temperature: float | None) -> list[PluginEffect]:
        """Let the model be as daring as that from its next frame on."""
        taste = LockstepTaste(
            temperature, None if state.config is None else state.config.draws.top_k
        )
        if state.taste == taste:
            return []
        effects = _append(state, taste)
        if effects:
            state.taste = taste
        return effects

    # The stream

    def _waits(self, state: State, heard: AudioFrame) -> bool:
        """Tell whether to let audio pass, since it is not known yet who is to hear it."""
        if state.running or state.configured:
            return False
        state.unheard_ms += 1000 * heard.samples / heard.rate_hz
        return state.unheard_ms <= self._settings.configure_ms

    def _ensure_running(self, state: State) -> list[PluginEffect]:
        return [] if state.running or state.broken else self._run(state)

    def _run(self, state: State, log: bytes = b"") -> list[PluginEffect]:
        state.running, state.proven = True, False
        config = state.config or PluginConfig()
        state.taste = LockstepTaste(config.temperature, config.draws.top_k)
        state.rewinds, state.sees_frames = 0, self._model.window_frames
        state.stuck_check = self._stuck_check()
        effects: list[PluginEffect] = [
            StartRequest(
                key=STREAM,
                pipeline=self._model.pipeline,
                first=self._start(state.config, log),
                more_input=True,
            )
        ]
        if not state.audience:
            effects.append(AppendToRequest(STREAM, LockstepFreeze(frozen=True)))
        return effects

    def _start(self, config: PluginConfig | None, log: bytes = b"") -> LockstepStart:
        config = config or PluginConfig()
        model = self._model
        return LockstepStart(
            instructions=config.instructions if model.reads_instructions else "",
            voice=config.voice or model.voices[0],
            seed=self._settings.seed if config.draws.seed is None else config.draws.seed,
            pins_persona=model.pins_persona,
            log=log,
            temperature=config.temperature,
            top_k=config.draws.top_k,
        )

    def _lost(self, state: State, code: str) -> list[PluginEffect]:
        state.running = False
        if state.proven and state.restarts < self._settings.max_restarts:
            return self._restart(state, code, keeps_context=True)
        state.broken = True
        if state.answer is not None:
            return self._end(state, ResponseOutcome.FAILED, code)
        state.failure = code  # as ``beginning`` in ``_frame``: the response that is granted fails
        return [BeginResponse()]

    def _restart(self, state: State, code: str, *, keeps_context: bool) -> list[PluginEffect]:
        """Begin the stream anew; what was being said ends."""
        effects: list[PluginEffect] = []
        if state.running:
            effects.append(StopRequest(STREAM))
            state.running = False
        if code:
            effects += self._end(state, ResponseOutcome.FAILED, code)
            state.restarts += 1
            if state.restarts > self._settings.max_restarts:
                state.broken = True
                return effects
        if not keeps_context:
            state.log.clear()
        state.last, state.beginning, state.held = None, None, 0
        return [*effects, *self._run(state, state.log.packed())]

    def _stuck_check(self) -> StuckCheck:
        settings = self._settings
        return StuckCheck(self._frames(settings.stuck_ms), settings.repeated_words)

    def _frames(self, duration_ms: int) -> int:
        samples = duration_ms * self._model.rate_hz // 1000
        return max(1, -(-samples // self._model.frame_samples))


def _append(
    state: State, payload: AudioChunk | LockstepFreeze | LockstepRewind | LockstepTaste
) -> list[PluginEffect]:
    return [AppendToRequest(STREAM, payload)] if state.running else []
