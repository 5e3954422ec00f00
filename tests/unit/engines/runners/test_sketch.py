from __future__ import annotations

import io
from typing import Any

import av
import msgspec
import pytest

from duologue.codecs.pictures import decode
from duologue.engines.media_payloads import (
    DrawImage,
    ImageData,
    MakeSound,
    MakeVideo,
    SoundData,
    StepsDone,
    VideoData,
)
from duologue.engines.payloads import Payload, TextDelta
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.sketch import SketchRunner, SketchSettings

IMAGE = DrawImage("a cat", 64, 48, 3, 3.5, 7)
VIDEO = MakeVideo("waves", 64, 48, 5, 8, 2, 3.5, 7)


def made(ask: Payload, **settings: Any) -> tuple[list[Payload], Step]:
    runner = SketchRunner(SketchSettings(**settings))
    job = Job("job", input_ended=True)
    job.inputs.append(ask)
    runner.open(job)
    outputs: list[Payload] = []
    step = Step()
    while runner.ready(job):
        (step,) = runner.step([job])
        outputs += step.outputs
        if step.done or step.error is not None:
            break
    runner.close(job)
    return outputs, step


def test_an_image_comes_after_its_steps_and_views() -> None:
    outputs, step = made(msgspec.structs.replace(IMAGE, partials=2))
    assert step.done
    assert [type(each) for each in outputs] == [
        *(StepsDone, ImageData, StepsDone, ImageData, StepsDone, ImageData)
    ]
    views = [each for each in outputs if isinstance(each, ImageData)]
    assert [each.partial for each in views] == [0, 1, -1]
    assert decode(views[-1].data, 1 << 20).shape == (48, 64, 3)
    assert len({each.data for each in views}) == 3


@pytest.mark.parametrize("with_sound", [False, True])
def test_a_video_can_be_shown(with_sound: bool) -> None:
    outputs, _ = made(VIDEO, with_sound=with_sound)
    data = b"".join(each.data for each in outputs if isinstance(each, VideoData))
    with av.open(io.BytesIO(data)) as film:
        assert sum(1 for _ in film.decode(video=0)) == 5
        assert bool(film.streams.audio) is with_sound


def test_a_sound_is_as_long_as_asked_for_and_another_one_for_each_seed() -> None:
    asks = [MakeSound("rain", 0.25, 2, 3.5, seed) for seed in (1, 1, 2)]
    sounds = [made(ask)[0][-1] for ask in asks]
    assert all(isinstance(each, SoundData) and len(each.pcm) == 4_000 * 4 for each in sounds)
    assert sounds[0] == sounds[1] != sounds[2]


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (msgspec.structs.replace(IMAGE, prompt="fail"), "stage_failed"),
        (msgspec.structs.replace(IMAGE, prompt="no memory"), "out_of_memory"),
        (msgspec.structs.replace(IMAGE, image=b"no picture"), "undecodable_image"),
        (TextDelta("hello"), "stage_failed"),
    ],
)
def test_faults_come_where_they_are_asked_for(ask: Payload, code: str) -> None:
    _, step = made(ask)
    assert step.error is not None
    assert step.error.code == code


def test_some_never_end() -> None:
    outputs, step = made(msgspec.structs.replace(IMAGE, prompt="never"))
    assert not step.done
    assert step.error is None
    assert outputs == [StepsDone(1, 3)]
