"""Settings that every plugin of a lockstep model has."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from duologue.config import Section

Positive = Annotated[int, Field(gt=0)]
NotNegative = Annotated[int, Field(ge=0)]


class LockstepSettings(Section):
    """How the model's frames become answers, and what an interruption does to it."""

    quiet_dbfs: Annotated[float, Field(le=0)] = -50.0
    """A frame without a word and below this level is a pause of the model."""

    end_ms: Positive = 1200
    """A pause of so long ends an answer; what is said then is the next one."""

    pause_ms: Positive = 240
    """After an interruption, what the model says is held until it pauses for so long by itself:
    the unfinished sentence does not go on."""

    hold_ms: Positive = 2000
    """It is held for so long at most, pause or none."""

    answer_ms: Positive = 10_000
    """An answer that a client has asked for is given up when the model says nothing for so long."""

    configure_ms: NotNegative = 500
    """Some clients send audio before they have said what they want; so much of it is let pass
    before the model begins with defaults."""

    rewind: bool = True
    """A client that says where its playback ended (truncate) takes the model back to there: it
    forgets what was not heard. Without, it goes on knowing it."""

    lead_ms: Positive = 240
    """The model is so far ahead of playback at most: so much it may remember that nobody heard."""

    backlog_ms: Positive = 480
    """When so much speech waits for a client that takes nothing, or its connection is lost, the
    model stands still until the client is back."""

    seed: NotNegative = 0
    """What is said depends on this and on what is heard; 0: each call another."""

    stuck_ms: Positive = 4000
    """A sound that does not change for so long is a model that is stuck: it begins anew."""

    repeated_words: Positive = 16
    """So is the same word so many times in a row."""

    max_restarts: NotNegative = 3
    """How often in a call a stream that was lost or stuck is begun anew."""
