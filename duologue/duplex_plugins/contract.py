"""The plugin contract: the policy of one model, pure and small.

``step(state, input) -> effects`` takes one of a closed union of inputs and returns a list of those
of another. It never waits, reads no clock, knows no socket; the session applies the effects. What
waits or computes is a request to a pipeline: ``StartRequest``, answered by ``RequestOutput``.

A plugin need not guard against late output of the requests of an interrupted response: the session
cancels them, drops what is on its way, and then says ``Interrupted``. But a request that stands
beside responses (``response_id`` ``None``) goes on, and so does its output: what of it is not to be
said any more, the plugin must tell, as that for lockstep models does (``rewinds``, ``held``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Protocol

import msgspec

from duologue.core.audio import AudioFrame
from duologue.duplex_plugins.one_shot import NOTHING_ALONE, OneShot
from duologue.duplex_plugins.persona import ANYBODY, AS_IT_LIKES, Draws, Persona
from duologue.duplex_plugins.retention import DEFAULT_RETENTION, Retention
from duologue.duplex_plugins.stream_noted import StreamNoted
from duologue.engines.payloads import NO_TOOLS, Payload, SpeechMark, TokenUsage, ToolCall, Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What the session must know about a model. Each flag changes what the session does.

    Args:
        input_rate_hz: Rate of the ``Audio`` inputs and of the session's sample clock.
        output_rate_hz: Rate of the PCM in ``SayAudio``.
        hears_audio: Send ``Audio`` inputs.
        hears_turns: Committed turns have their ``recording``, padding included.
        reads_transcripts: Send ``UserTranscript``, whether or not the client asked to see it.
        reads_partials: Also while the person still speaks: else only where the client sees it.
        decides_turns: The model itself begins responses (``BeginResponse``) and hears when it is
            interrupted: no detector runs, and its silence is no fault.
        tick_ms: Send ``Tick`` at this interval of real time; ``None``: never.
        frame_ms: How much audio it takes and gives at a time, and is sent; ``None``: any amount.
        lead_ms: Send speech at most so far ahead of playback, whatever the settings allow:
            the model remembers what it said, heard or not. ``None``: as far as the settings say.
        backlog_ms: When more speech than this waits for the client, or the connection is lost, say
            ``AudienceChanged``. ``None``: never; what is said waits as long as there is room.
        voices: Names that a client may ask for; the first is the default.
        speaks: The model can answer with audio.
        sees: The model understands pictures; without it they are refused.
        persona: What it can be told of who it is, and of how it draws.
        one_shot: What it can do without a session.
        resident: The pipeline of which each session holds a place as long as it lasts; "": none.
    """

    input_rate_hz: int = 16000
    output_rate_hz: int = 24000
    hears_audio: bool = False
    hears_turns: bool = False
    reads_transcripts: bool = False
    reads_partials: bool = False
    decides_turns: bool = False
    tick_ms: int | None = None
    frame_ms: int | None = None
    lead_ms: int | None = None
    backlog_ms: int | None = None
    voices: tuple[str, ...] = ("default",)
    speaks: bool = True
    sees: bool = False
    persona: Persona = ANYBODY
    one_shot: OneShot = NOTHING_ALONE
    resident: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginConfig:
    """The part of the session's configuration that a model may care about."""

    instructions: str = ""
    voice: str | None = None
    speed: float = 1.0
    temperature: float | None = None
    draws: Draws = AS_IT_LIKES
    max_output_tokens: int | None = None
    audio_out: bool = True
    """The client wants to hear the answer, not only read it."""

    tools: Tools = NO_TOOLS
    """What ``CallFunction`` may call."""

    retention: Retention = DEFAULT_RETENTION


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemView:
    """One item of the conversation as a prompt should have it.

    A function call is an assistant's item with ``call``; it is always followed by an item of role
    ``tool`` with the same ``call_id``, with at most other calls and outputs between them.

    Args:
        text: For an assistant's speech, what was heard; for a tool, its output. ``None``: a
            transcript is still to come (``UserTranscript`` with this item's id), or the output.
        interrupted: The person cut it off.
        call: The function call that this item is; its text is empty.
        call_id: Of a tool's output: the call that it answers.
        silence: Nobody spoke for the idle time-out: an answer to it speaks up.
        images: Pictures in it, as ``data:image/`` URLs; only where the model sees.
    """

    id: str
    role: Literal["system", "user", "assistant", "tool"]
    text: str | None
    interrupted: bool = False
    call: ToolCall | None = None
    call_id: str = ""
    silence: bool = False
    images: tuple[str, ...] = ()


class TurnKind(Enum):
    """How the person's floor changed."""

    STARTED = "started"
    PAUSING = "pausing"
    """A short silence: the turn may be over. Work may begin on speculation."""

    RESUMED = "resumed"
    """It was not over: speculation is void."""

    COMMITTED = "committed"
    """The turn is over and is an item of the conversation now."""

    ABANDONED = "abandoned"
    """It was none after all: the client took the audio back. Speculation is void."""


class TranscriptKind(Enum):
    """How much a transcript may still change."""

    PARTIAL = "partial"
    SPECULATIVE = "speculative"
    """Final if the turn ends here (``PAUSING`` came before)."""

    FINAL = "final"


class Audio(msgspec.Struct, frozen=True, gc=False):
    """The person's microphone, without gaps. A struct, since one is made for every frame."""

    frame: AudioFrame


@dataclass(frozen=True, slots=True)
class Turn:
    """The person's floor changed at ``sample``; ``item_id`` is the item the turn becomes."""

    kind: TurnKind
    item_id: str
    sample: int
    recording: AudioFrame | None = None


@dataclass(frozen=True, slots=True)
class UserTranscript:
    """Text of the person's turn ``item_id``; each replaces the one before."""

    item_id: str
    text: str
    kind: TranscriptKind


@dataclass(frozen=True, slots=True)
class ResponseRequested:
    """Answer now. Ends with the plugin's ``EndResponse``, or with ``Interrupted``.

    Args:
        out_of_band: Beside the conversation, which it does not enter; others may run meanwhile.
    """

    response_id: str
    conversation: tuple[ItemView, ...]
    config: PluginConfig
    out_of_band: bool = False


@dataclass(frozen=True, slots=True)
class ConversationChanged:
    """The conversation is another one, as a prompt made now should have it.

    Comes when an item was added, deleted, transcribed or cut, so that a plugin which works ahead
    need not keep a copy of its own. ``ResponseRequested`` brings its own.
    """

    conversation: tuple[ItemView, ...]


@dataclass(frozen=True, slots=True)
class ConfigChanged:
    """The session's configuration changed; running responses keep theirs.

    ``by_client`` is false as long as the client has not said what it wants: these are defaults.
    """

    config: PluginConfig
    by_client: bool = True


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """The request that the plugin started under ``key`` produced something."""

    key: str
    payload: Payload


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """The request under ``key`` has ended; the key is free again."""

    key: str


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """The request under ``key`` failed; the key is free again.

    A response that cannot do without it is ended by the plugin with ``EndResponse`` FAILED.
    """

    key: str
    code: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The response is over: interrupted, cancelled or failed by the session.

    Its requests are cancelled already. ``heard`` is the text that was heard, as far as is known.
    Comes again when that changes (playback was cut, or the client knows better), even after the
    plugin's ``EndResponse``.

    Args:
        cut_sample: Where playback of its speech ended, counted from the start of the response at
            ``Capabilities.output_rate_hz``; ``None`` unless the client itself has said so.
    """

    response_id: str
    heard: str
    cut_sample: int | None = None


@dataclass(frozen=True, slots=True)
class AudienceChanged:
    """Nobody takes in what is said any more, or somebody does: where ``backlog_ms`` is set."""

    present: bool


@dataclass(frozen=True, slots=True)
class Tick:
    """The session's frame clock, every ``Capabilities.tick_ms``."""

    count: int


PluginInput = (
    Audio
    | Turn
    | UserTranscript
    | ResponseRequested
    | ConversationChanged
    | ConfigChanged
    | RequestOutput
    | RequestEnded
    | RequestFailed
    | Interrupted
    | AudienceChanged
    | Tick
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    """Submit a request to the engine under a key of the plugin's choice.

    Args:
        response_id: The response that it is for: it is cancelled with it. ``None``: speculative or
            standing, and the plugin stops it itself.
        more_input: ``AppendToRequest`` follows, ended by ``FinishRequest``.
        credit: See ``engines.ports.Request``; the session grants more for audio as it is sent.
    """

    key: str
    pipeline: str
    first: Payload | None = None
    response_id: str | None = None
    more_input: bool = False
    credit: int | None = None


@dataclass(frozen=True, slots=True)
class AppendToRequest:
    """Add input to a request."""

    key: str
    payload: Payload


@dataclass(frozen=True, slots=True)
class FinishRequest:
    """No further input for a request; it answers what it has, then ends."""

    key: str


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Stop a request; nothing more of it arrives, and the key is free at once."""

    key: str


@dataclass(frozen=True, slots=True)
class AdoptRequest:
    """A request begun on speculation now belongs to a response, and is cancelled with it."""

    key: str
    response_id: str


@dataclass(frozen=True, slots=True)
class BeginResponse:
    """The model wants to speak unasked; answered by ``ResponseRequested``.

    Ignored while a response of the default conversation is active.
    """


@dataclass(frozen=True, slots=True)
class Listen:
    """The model has heard, and decides to say nothing for now. Clients that asked are told."""


@dataclass(frozen=True, slots=True)
class SayText:
    """The next piece of the response's text: transcript of its speech, or its text output."""

    response_id: str
    text: str


class SayAudio(msgspec.Struct, frozen=True, gc=False):
    """The next samples of the response's speech, s16le mono at ``Capabilities.output_rate_hz``.

    ``marks`` tie text offsets to samples, both counted from the start of the response.
    """

    response_id: str
    pcm: bytes
    marks: tuple[SpeechMark, ...] = ()


@dataclass(frozen=True, slots=True)
class CallFunction:
    """The next piece of a function call, or all of it; the client runs the function.

    What a response says and calls is given in the order of output: text and speech after a call
    are another message, with marks that still count from the start of the response, and nothing
    else may come between the pieces of one call. No response begins by itself when the output
    arrives: the client asks for it.

    Args:
        call: The plugin's name for the call within its response, to tell pieces of two calls
            apart. The session makes the ``call_id``.
        name: One that ``PluginConfig.tools`` allows.
        arguments: All pieces together are JSON text.
        done: The call is whole. It is, too, when something else of the response follows.
    """

    response_id: str
    call: str
    name: str
    arguments: str = ""
    done: bool = True


class ResponseOutcome(Enum):
    """How a plugin ends a response."""

    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    """Stopped at a limit, as ``max_output_tokens``."""

    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class EndResponse:
    """All of the response has been said.

    Args:
        reason: Stable name of the limit or fault when the outcome is not COMPLETED.
    """

    response_id: str
    outcome: ResponseOutcome = ResponseOutcome.COMPLETED
    reason: str = ""
    usage: TokenUsage | None = None


PluginEffect = (
    StartRequest
    | AppendToRequest
    | FinishRequest
    | StopRequest
    | AdoptRequest
    | BeginResponse
    | StreamNoted
    | Listen
    | SayText
    | SayAudio
    | CallFunction
    | EndResponse
)


class DuplexPlugin(Protocol):
    """One model's policy. A plugin object is shared by all sessions; state is per session."""

    def capabilities(self) -> Capabilities:
        """Return what the model can do; constant for the life of the process."""
        ...

    def open(self, config: PluginConfig) -> Any:
        """Return the state of a new session."""
        ...

    def step(self, state: Any, item: PluginInput) -> Sequence[PluginEffect]:
        """Advance ``state`` by one input and return what should happen.

        Raises:
            PluginError: The contract was broken; the session closes.
        """
        ...
