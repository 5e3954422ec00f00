"""Says back what it hears, frame by frame, in one response that never ends.

The smallest plugin of the full-duplex kind: it decides itself when to speak. Used to measure the
gateway, and to test a microphone and a loudspeaker. This module must not know anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from duologue.config import Section, parse_section
from duologue.duplex_plugins.contract import (
    Audio,
    BeginResponse,
    Capabilities,
    EndResponse,
    Interrupted,
    PluginConfig,
    PluginEffect,
    PluginInput,
    ResponseRequested,
    SayAudio,
)

RATE_HZ = 24000


class EchoSettings(Section):
    """Nothing to set."""


@dataclass(slots=True)
class State:
    """The response that the echo speaks in, once there is one."""

    response_id: str | None = None


class EchoPlugin:
    """An echo."""

    def capabilities(self) -> Capabilities:
        """Hears and speaks at 24 kHz, and begins by itself."""
        return Capabilities(
            input_rate_hz=RATE_HZ,
            output_rate_hz=RATE_HZ,
            hears_audio=True,
            decides_turns=True,
        )

    def open(self, config: PluginConfig) -> State:
        """Silent until the first frame."""
        return State()

    def step(self, state: State, item: PluginInput) -> Sequence[PluginEffect]:
        """Say the frame that was heard; ask for a response first where there is none."""
        if isinstance(item, Audio):  # nearly always
            if state.response_id is not None:
                return (SayAudio(state.response_id, item.frame.pcm),)
            return (BeginResponse(),)
        match item:
            case ResponseRequested(response_id=response_id, out_of_band=True):
                return (EndResponse(response_id),)  # nothing to say beside the conversation
            case ResponseRequested(response_id=response_id):
                state.response_id = response_id
            case Interrupted(response_id=response_id) if response_id == state.response_id:
                state.response_id = None
            case _:
                pass
        return ()


def create(options: Mapping[str, object]) -> EchoPlugin:
    """Make the plugin; it takes no options."""
    parse_section(EchoSettings, options, whose="plugin echo")
    return EchoPlugin()
