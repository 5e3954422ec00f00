"""Settings of sessions: limits, pacing and manners."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from duologue.config import Section

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

    partial_ms: Positive = 500
    """Audio between two partial transcripts."""

    onset_ms: Positive = 60
    pause_ms: Positive = 96
    check_ms: Positive = 96
    earliest_ms: Positive = 160
    max_turn_ms: Positive = 60_000
    min_interruption_ms: Positive = 350
    """Speech over an audible answer that counts as an interruption; shorter is a "mm-hm"."""

    stalled_input_s: Annotated[float, Field(gt=0)] = 5.0
    """A client that sends nothing for so long in mid-speech has ended its turn."""


class SessionSettings(Section):
    """What one session may hold, and how it talks."""

    max_sessions: Positive = 200
    listening: ListeningSettings = ListeningSettings()
    input_buffer_ms: Positive = 300_000
    """Uncommitted audio of a client that commits by hand."""

    mailbox_size: Positive = 256
    """Inputs that wait while another one is applied."""

    max_items: Positive = 1000
    max_out_of_band_responses: Positive = 4
    output_buffer_ms: Positive = 30_000
    output_buffer_bytes: Positive = 4 << 20
    output_events: Positive = 1024
    send_lead_ms: NotNegative = 3000
    """Speech sent ahead of playback; 0 sends all at once."""

    delta_ms: Positive = 200
    merge_ms: NotNegative = 100
    """Shorter pieces of speech wait for more unless the client would run dry; 0 sends each."""

    response_timeout_s: Annotated[float, Field(gt=0)] = 30.0
    """A response that has produced nothing for so long has failed."""

    max_duration_s: Annotated[float, Field(gt=0)] = 3600.0
    stall_limit_s: Annotated[float, Field(gt=0)] = 15.0
    """A client that takes nothing for so long, though there is something, is let go."""
