"""Runs a model as its stages would, and gives what was heard as numbers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from duologue.codecs.pcm import pcm_to_float
from duologue.engines.payloads import AudioChunk, CodeFrames, Payload, SpeakText, SpeechMark
from duologue.engines.runners.contract import Job, Runner
from duologue.engines.runners.speech.contract import Codec, Codes, Samples, Talker
from duologue.engines.runners.speech.loading import SpeechSettings, speech_runner


def in_chunks(codec: Codec, codes: Codes, first: int, usual: int) -> Samples:
    """Sound all frames, so many at a time."""
    stream = codec.begin()
    parts, at, size = [], 0, first
    while at < len(codes):
        parts += codec.decode([stream], [codes[at : at + size]])
        at, size = at + size, usual
        assert sum(map(len, parts)) == codec.length(min(at, len(codes)))
    codec.end(stream)
    return np.concatenate(parts)


def spoken(
    talker: Callable[[Any], Talker],
    codec: Callable[[Any], Codec],
    settings: SpeechSettings,
    text: str,
    *,
    stages: int = 1,
) -> Samples:
    """Say a text, with a mark at its end."""
    made = speech_runner(type(settings), talker, codec)
    fields = {name: getattr(settings, name) for name in settings.__struct_fields__}

    def runner(part: str) -> Runner:
        return made.build(type(settings)(**{**fields, "part": part}), lambda: None)

    clause = SpeakText(text, len(text))
    if stages == 1:
        heard = outputs(runner("fused"), clause)
    else:
        said = outputs(runner("talker"), clause)
        ahead = [each for each in said if isinstance(each, AudioChunk)]
        codes = [each for each in said if isinstance(each, CodeFrames)]
        assert len(ahead) == settings.first_audio
        heard = [*ahead, *outputs(runner("codec"), *codes)]
    samples = b"".join(each.pcm for each in heard if isinstance(each, AudioChunk))
    assert heard[-1] == SpeechMark(len(text), len(samples) // 2)
    return pcm_to_float(samples)


def outputs(runner: Runner, *inputs: Payload) -> list[Payload]:
    """Run one job to its end."""
    runner.warm_up()
    job = Job("j", inputs=deque(inputs), input_ended=True)
    runner.open(job)
    made: list[Payload] = []
    while runner.ready(job):
        (step,) = runner.step([job])
        assert step.error is None
        made += step.outputs
    runner.close(job)
    return made
