"""From the settings of a stage to its runner: what every speech model is told in the same words.

This module must not know any model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

import msgspec

from duologue.engines.runners.contract import Runner
from duologue.engines.runners.registry import RunnerType
from duologue.engines.runners.speech.contract import Codec, Talker
from duologue.engines.runners.speech.sounding import ChunkSizes
from duologue.engines.runners.speech.stages import CodecRunner, FusedRunner, TalkerRunner

Frames = Annotated[int, msgspec.Meta(ge=1, le=10_000)]


class TorchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a model runs.

    Args:
        device: As torch names it.
        dtype: Of weights and activations; codecs are always float32.
        threads: Of torch on a CPU; 0: as torch likes.
    """

    device: str = "cpu"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    threads: Annotated[int, msgspec.Meta(ge=0, le=1024)] = 0


class SpeechSettings(TorchSettings, frozen=True, kw_only=True):
    """Settings that all speech models have.

    Args:
        folder: A checkpoint as ``save_pretrained`` writes it.
        part: What this stage is: the ``talker``, the ``codec``, or both ``fused``.
        slots: How many jobs there may be; ``max_jobs`` of the stage must not be more.
        first_audio: A talker sounds the first frame of each job itself; its edge must be
            ``sounded_ahead``.
        first_frames: What is sounded first; ``chunk_frames``: at a time from then on.
        max_frames: Longest utterance, which is a clause.
        temperature, top_k: How codes are drawn; at 0 the likeliest is taken.
        seed: What is drawn depends on this and on the text alone; 0: on nothing.
    """

    folder: str
    part: Literal["fused", "talker", "codec"] = "fused"
    slots: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 8
    first_audio: bool = False
    first_frames: Frames = 1
    chunk_frames: Frames = 6
    max_frames: Frames = 750
    temperature: Annotated[float, msgspec.Meta(ge=0, le=4)] = 0.9
    top_k: Annotated[int, msgspec.Meta(ge=1, le=65_536)] = 50
    seed: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)] = 0


S = TypeVar("S", bound=SpeechSettings)


def speech_runner(
    settings: type[S], talker: Callable[[S], Talker], codec: Callable[[S], Codec]
) -> RunnerType[S]:
    """Make the runner type of a model from how its two parts are loaded."""

    def build(values: S) -> Runner:
        sizes = ChunkSizes(values.first_frames, values.chunk_frames)
        match values.part:
            case "talker":
                ahead = codec(values) if values.first_audio else None
                return TalkerRunner(talker(values), values.max_frames, ahead)
            case "codec":
                return CodecRunner(codec(values), sizes)
            case "fused":
                return FusedRunner(talker(values), codec(values), values.max_frames, sizes)

    return RunnerType.plain(settings, build, sleep_levels=(2,))
