from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import msgspec
import numpy as np
import pytest

from duologue.codecs.fmp4.writer import Fmp4Writer
from duologue.engines.media_payloads import MakeSound, MakeVideo, SoundData, StepsDone, VideoData
from duologue.engines.runners.diffusion.results import to_pixels
from duologue.engines.runners.diffusion.running import Batch
from tests.unit.engines.runners.diffusion.driving import Driven, library, runner_of

pytestmark = [
    pytest.mark.diffusion,
    # diffusers' AudioLDM 2 asks transformers' GPT-2 in an older way, and the codec of Stable Audio
    # torch for its weights.
    pytest.mark.filterwarnings("ignore:.*past_key_values.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning"),
]

Tiny = Callable[[str], Path]

WORDS = {"max_sequence_length": 16}
TEMPLATE = {"prompt_template": {"template": "<s>{}", "crop_start": 0}}
WAVES = MakeVideo("waves at night", 32, 32, 9, 8, 2, 3.0, 7)


def film_of(driven: Driven, number: int = 0) -> tuple[list[Any], Any]:
    data = b"".join(each.data for each in driven.of(VideoData, number))
    with av.open(io.BytesIO(data)) as film:
        pictures = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
        has_sound = bool(film.streams.audio)
    return pictures, has_sound


@pytest.mark.parametrize("name", ["wan", "wan22", "ltx", "hunyuanvideo"])
def test_a_video_is_the_librarys_encoded(name: str, tiny: Tiny) -> None:
    call = WORDS | (TEMPLATE if name == "hunyuanvideo" else {})
    driven = Driven(runner_of(tiny(name), call=call), WAVES).finish()

    frames = library(
        tiny(name),
        prompt=WAVES.prompt,
        width=32,
        height=32,
        num_frames=9,
        num_inference_steps=2,
        guidance_scale=3.0,
        seed=7,
        output_type="np",
        **call,
    ).frames[0]
    wanted = Fmp4Writer(32, 32, 8)
    encoded = b"".join(
        wanted.add([to_pixels(each) for each in frames[start : start + 4]]) for start in (0, 4, 8)
    )
    assert b"".join(each.data for each in driven.of(VideoData)) == encoded + wanted.end()
    assert driven.of(StepsDone) == [StepsDone(1, 2), StepsDone(2, 2)]
    assert sum(each.pictures for each in driven.of(VideoData)) == 9


def test_a_long_video_is_worked_on_in_windows_and_keeps_its_sound(tiny: Tiny) -> None:
    source = Fmp4Writer(48, 32, 8, audio_rate_hz=16_000)
    pictures = [np.full((32, 48, 3), 10 * number, np.uint8) for number in range(21)]
    tone = 0.3 * np.sin(np.arange(42_000) * 0.1)[None].astype(np.float32)
    data = source.add(pictures, tone) + source.end()
    ask = msgspec.structs.replace(WAVES, source=data, overlap=4, strength=0.6)

    driven = Driven(runner_of(tiny("wan"), call=WORDS), ask).finish()

    assert driven.errors == [None]
    made, has_sound = film_of(driven)
    assert len(made) == 21, "the last window is shorter than the others"
    assert made[0].shape == (32, 32, 3)
    assert has_sound
    assert driven.of(VideoData)[0].mime.endswith('mp4a.40.2"')


def test_a_long_video_is_given_up_at_the_next_point(tiny: Tiny) -> None:
    source = Fmp4Writer(32, 32, 8)
    data = source.add([np.zeros((32, 32, 3), np.uint8)] * 40) + source.end()
    ask = msgspec.structs.replace(WAVES, source=data, overlap=4)
    driven = Driven(runner_of(tiny("wan"), call=WORDS), ask)
    driven.until(lambda: bool(driven.of(VideoData)))
    driven.jobs[0].cancelled = True
    driven.finish()
    assert sum(each.pictures for each in driven.of(VideoData)) < 40


def test_what_is_no_video_is_the_senders_fault(tiny: Tiny) -> None:
    ask = msgspec.structs.replace(WAVES, source=b"no film")
    driven = Driven(runner_of(tiny("wan"), call=WORDS), ask).finish()
    assert driven.errors[0] is not None
    assert driven.errors[0].code == "undecodable_video"


SOUNDS = {"stableaudio": (2, 8_000), "audioldm2": (1, 16_000)}


@pytest.mark.parametrize(("name", "form"), SOUNDS.items())
def test_a_sound_has_the_length_that_was_asked_for(
    name: str, form: tuple[int, int], tiny: Tiny
) -> None:
    channels, rate_hz = form
    driven = Driven(runner_of(tiny(name), call={}), MakeSound("rain", 0.25, 2, 3.0, 7)).finish()
    assert driven.errors == [None]
    (sound,) = driven.of(SoundData)
    assert (sound.rate_hz, sound.channels) == (rate_hz, channels)
    assert len(sound.pcm) == rate_hz // 4 * channels * 2
    assert driven.of(StepsDone)[-1] == StepsDone(2, 2)


def test_what_a_request_gave_is_taken_once() -> None:
    batch = Batch([WAVES, WAVES])
    batch.put_all(StepsDone(1, 2))
    batch.put(1, StepsDone(2, 2))
    assert batch.take(1) == [StepsDone(1, 2), StepsDone(2, 2)]
    assert batch.take(1) == []
    assert batch.take(0) == [StepsDone(1, 2)]
