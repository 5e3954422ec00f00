"""A lockstep model by hand: frames that can be told apart, and the plugin they are given to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from duologue.core.audio import AudioFrame
from duologue.duplex_plugins.contract import (
    AppendToRequest,
    Audio,
    BeginResponse,
    ConfigChanged,
    PluginConfig,
    PluginEffect,
    PluginInput,
    RequestOutput,
    ResponseRequested,
    SayAudio,
    StartRequest,
)
from duologue.duplex_plugins.lockstep.plugin import STREAM, LockstepModel, LockstepPlugin
from duologue.duplex_plugins.lockstep.settings import LockstepSettings
from duologue.engines.payloads import AudioChunk, LockstepFrame, LockstepRewind, LockstepStart

FRAME_SAMPLES = 1920
SILENCE = bytes(2 * FRAME_SAMPLES)
HEARD = Audio(AudioFrame(SILENCE, 24_000, 0))


def loud(number: int) -> bytes:
    """Sound that says which frame it is."""
    return (1000 + number).to_bytes(2, "little") * FRAME_SAMPLES


def number_of(pcm: bytes) -> int:
    return int.from_bytes(pcm[:2], "little") - 1000


class Bench:
    """The plugin as a session has it: a response that it begins is granted at once."""

    def __init__(
        self, settings: LockstepSettings | None = None, model: LockstepModel | None = None
    ) -> None:
        self.plugin = LockstepPlugin(
            model or LockstepModel(pipeline="model", voices=("anna", "bert"), window_frames=50),
            settings or LockstepSettings(end_ms=400, pause_ms=160, hold_ms=800, answer_ms=400),
        )
        self.state = self.plugin.open(PluginConfig())
        self.number = 0
        self.rewinds = 0
        self.responses = 0

    def give(self, item: PluginInput) -> list[PluginEffect]:
        effects = list(self.plugin.step(self.state, item))
        if any(isinstance(effect, BeginResponse) for effect in effects):
            effects += self.request()
        return effects

    def request(self) -> Sequence[PluginEffect]:
        self.responses += 1
        return self.give(ResponseRequested(f"r{self.responses}", (), PluginConfig()))

    def configure(self, **config: Any) -> list[PluginEffect]:
        return self.give(ConfigChanged(PluginConfig(**config)))

    def tick(self, pcm: bytes | None = None, text: str = "") -> list[PluginEffect]:
        """The model's next frame; loud, unless said otherwise."""
        frame = LockstepFrame(
            self.number,
            loud(self.number) if pcm is None else pcm,
            text,
            token=100 + self.number if text else 3,
            codes=(self.number, 1),
            heard=(2, self.number),
            rewinds=self.rewinds,
        )
        self.number += 1
        return self.give(RequestOutput(STREAM, frame))

    def quiet(self, frames: int) -> list[PluginEffect]:
        return [effect for _ in range(frames) for effect in self.tick(SILENCE)]

    def loud(self, frames: int) -> list[PluginEffect]:
        return [effect for _ in range(frames) for effect in self.tick()]


def heard_of(effects: Sequence[PluginEffect]) -> list[tuple[str, int]]:
    """Response and frame of all that is said and loud."""
    said = [effect for effect in effects if isinstance(effect, SayAudio)]
    return [(each.response_id, number_of(each.pcm)) for each in said if each.pcm != SILENCE]


def start_of(effects: Sequence[PluginEffect]) -> LockstepStart:
    (start,) = [effect for effect in effects if isinstance(effect, StartRequest)]
    assert start.key == STREAM
    assert start.more_input
    assert start.response_id is None, "it outlives every answer"
    assert isinstance(start.first, LockstepStart)
    return start.first


def rewinds_of(effects: Sequence[PluginEffect]) -> list[int]:
    payloads = [effect.payload for effect in effects if isinstance(effect, AppendToRequest)]
    return [payload.frame for payload in payloads if isinstance(payload, LockstepRewind)]


def chunks_of(effects: Sequence[PluginEffect]) -> list[AudioChunk]:
    payloads = [effect.payload for effect in effects if isinstance(effect, AppendToRequest)]
    return [payload for payload in payloads if isinstance(payload, AudioChunk)]
