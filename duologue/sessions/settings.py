"""Settings of sessions: limits, pacing and manners."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from duologue.config import Section
from duologue.sessions.backlog import BACKLOG_BYTES

Positive = Annotated[int, Field(gt=0)]
NotNegative = Annotated[int, Field(ge=0)]


class ListeningSettings(Section):
    """Which pipelines hear the person, and when a turn begins and ends."""

    vad: str | None = "vad"
    """Pipeline of the voice activity detector; without one clients commit by hand."""

    end_of_turn: str | None = "end_of_turn"
    """Pipeline of the end-of-turn model; without one there is no semantic_vad."""

    asr: str | None = "asr"
    """Pipeline of the recogniser."""

    languages: tuple[str, ...] = ("en",)
    """What the recogniser understands, as ISO 639-1, for requests that name a language; empty:
    any."""

    translates: bool = False
    """The recogniser can answer in English, whatever is spoken."""

    partial_ms: Positive = 500
    """Audio between two partial transcripts."""

    onset_ms: Positive = 60
    """Speech in a row that begins a turn; shorter is a click."""

    pause_ms: Positive = 32
    """Silence after which the turn may be over and work on an answer begins on speculation: one
    window of the neural detector, which hardly ever takes a short break within a word for silence.
    Where vad_webrtc or vad_energy detects speech, 64 is better."""

    check_ms: Positive = 64
    """Silence after which the end-of-turn model is asked."""

    earliest_ms: Positive = 288
    """Silence before which its yes does not count. People pause for 200 to 260 ms between two
    sentences, and work on the answer has begun already."""

    max_turn_ms: Positive = 60_000
    """Longest turn; what is said after it is the next one, once there is a pause in it."""

    min_interruption_ms: Positive = 350
    """Speech over an audible answer that counts as an interruption; shorter is a "mm-hm"."""

    soft_pause_ms: NotNegative = 0
    """The answer pauses at the first sign of an interruption, for so long at most, and goes on with
    the next sample where it was none; 0: it goes on meanwhile. Of use with a small send_lead_ms."""

    echo_suppression: bool = True
    """What the detector takes for speech is none where it sounds like the answer being played."""

    detector_timeout_s: Annotated[float, Field(gt=0)] = 10.0
    """A detector that owes an answer and says nothing for so long hangs; another one is tried."""

    first_update_hold_s: Annotated[float, Field(ge=0)] = 1.0
    """Until the client has configured the session, for so long at most, answers that the detector
    asks for are held back: some clients stream before that."""

    stalled_input_s: Annotated[float, Field(gt=0)] = 5.0
    """A client that sends nothing for so long in mid-speech has ended its turn."""


class FrameSettings(Section):
    """Frames of a camera (``video.frame``), where the model sees."""

    per_s: Annotated[float, Field(gt=0, le=60)] = 2.0
    """Frames that are kept a second; of those that come faster the newest wins."""

    max_bytes: Positive = 1 << 20
    """Largest frame, as a file."""

    kept: Positive = 32
    """Frames that wait for the person's next turn; the oldest go."""

    kept_bytes: Positive = 4 << 20
    """The same bound in bytes; the newest stays in any case."""

    per_turn: Annotated[int, Field(ge=1, le=64)] = 4
    """Frames that a turn is given: the newest, the oldest, and others at even distances between."""

    turns: Positive = 3
    """Turns whose frames stay in the conversation."""


class SessionSettings(Section):
    """What one session may hold, and how it talks."""

    max_sessions: Positive = 200
    """Calls at the same time; further ones are refused with 503."""

    listening: ListeningSettings = ListeningSettings()
    """How the person is heard."""

    input_buffer_ms: Positive = 360_000
    """The person's audio that is kept: of the turn that goes on, or until the client commits it by
    hand. As much again may wait that came in items and is to be transcribed."""

    mailbox_size: Positive = 256
    """Inputs that wait while another one is applied, in two queues of this size. Outputs of models:
    where too many wait, the call ends. What the client says: one too many is refused."""

    input_backlog_bytes: Positive = BACKLOG_BYTES
    """What a client has said and that is not taken in yet: long messages, and those behind them."""

    max_conversation_bytes: Positive = 8 << 20
    """Text and pictures that a client may put into the conversation."""

    frames: FrameSettings = FrameSettings()
    """What a camera shows beside the speech."""

    max_items: Positive = 1000
    """Items that a conversation keeps."""

    max_out_of_band_responses: Positive = 4
    """Responses beside the conversation that a session may run at the same time."""

    output_buffer_ms: Positive = 30_000
    """Audio that may wait for the client; a response that makes more fails."""

    output_buffer_bytes: Positive = 4 << 20
    """The same bound in bytes, for all that waits."""

    output_events: Positive = 1024
    """Events other than audio that may wait for the client."""

    send_lead_ms: NotNegative = 3000
    """Speech sent ahead of playback; 0 sends all at once."""

    delta_ms: Positive = 200
    """The longest piece of speech in one message."""

    merge_ms: NotNegative = 100
    """Shorter pieces of speech wait for more unless the client would run dry; 0 sends each."""

    response_timeout_s: Annotated[float, Field(gt=0)] = 30.0
    """A response that has produced nothing for so long has failed; so has a recogniser that a
    committed turn waits for."""

    inaudible_timeout_s: Annotated[float, Field(gt=0)] = 30.0
    """A spoken answer of whose text nothing sounds for so long has failed."""

    max_duration_s: Annotated[float, Field(gt=0)] = 3600.0
    """A call ends after so long."""

    expiry_warning_s: Annotated[float, Field(ge=0)] = 60.0
    """So long before that, duplex clients are told."""

    expiry_grace_s: Annotated[float, Field(ge=0)] = 30.0
    """An answer that is being said then may go on for so long; no other begins."""

    disconnect_grace_s: Annotated[float, Field(ge=0)] = 30.0
    """A call that has lost its connection waits so long for another one, where its client can
    resume it; 0: calls end with their connections."""

    rollover_bytes: NotNegative = 16 << 20
    """Conversations of calls that have reached ``max_duration_s`` are kept for
    ``disconnect_grace_s``, so that new calls can go on with them; 0: none is."""

    checkpoint_folder: Path | None = None
    """Where the words of calls that can be resumed are kept, so that they outlive this process: who
    comes back within ``disconnect_grace_s`` of its next start goes on in a new call. No sound is
    written, and nothing after a call has ended by itself. None: nothing is written."""

    checkpoint_files: Positive = 4096
    """Files in it; when there are more at a start, the oldest go."""

    checkpoint_bytes: Positive = 256 * 1024
    """Of one call; a longer conversation is not kept."""

    checkpoint_max_age_s: Annotated[float, Field(gt=0)] = 3600.0
    """Older ones are removed at a start."""

    stall_limit_s: Annotated[float, Field(gt=0)] = 15.0
    """A client that takes nothing for so long, though there is something, is let go."""


def without_missing(
    settings: SessionSettings, has_pipeline: Callable[[str], bool]
) -> SessionSettings:
    """Leave out of what hears the person what the engine has no pipeline for."""

    def present(name: str | None) -> str | None:
        return name if name is not None and has_pipeline(name) else None

    listening = settings.listening
    return _listening(
        settings,
        vad=present(listening.vad),
        end_of_turn=present(listening.end_of_turn),
        asr=present(listening.asr),
    )


def undetected(settings: SessionSettings) -> SessionSettings:
    """Leave out the detector: the model itself decides about turns."""
    return _listening(settings, vad=None)


def _listening(settings: SessionSettings, **changes: str | None) -> SessionSettings:
    listening = settings.listening.model_copy(update=changes)
    return settings.model_copy(update={"listening": listening})
