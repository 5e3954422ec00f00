from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from peft import LoraConfig
from peft.utils import get_peft_model_state_dict

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.media_payloads import ImageData, LoraChoice
from duologue.engines.runners.diffusion.pipelines import Pipelines, takes
from duologue.engines.runners.diffusion.settings import DiffusionSettings
from tests.unit.engines.runners.diffusion.driving import CAT, Driven, runner_of

pytestmark = pytest.mark.diffusion

Tiny = Callable[[str], Path]


def made_lora(folder: Path, pipeline: Path) -> Path:
    """Write an adapter as trainers do."""
    import diffusers
    import torch

    pipe = diffusers.StableDiffusion3Pipeline.from_pretrained(pipeline)
    pipe.transformer.add_adapter(LoraConfig(r=2, target_modules=["to_q", "to_v"]))
    torch.manual_seed(0)
    for name, weight in pipe.transformer.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight)
    layers = get_peft_model_state_dict(pipe.transformer)
    pipe.save_lora_weights(folder, transformer_lora_layers=layers)
    return folder / "pytorch_lora_weights.safetensors"


def test_an_adapter_changes_the_image_by_as_much_as_is_asked(tiny: Tiny, tmp_path: Path) -> None:
    lora = made_lora(tmp_path, tiny("sd3"))
    runner = runner_of(tiny("sd3"), loras={"ink": str(lora)})

    def drawn(choice: LoraChoice | None) -> bytes:
        from msgspec.structs import replace

        driven = Driven(runner, replace(CAT, lora=choice)).finish()
        assert driven.errors == [None]
        return bytes(driven.of(ImageData)[0].data)

    plain = drawn(None)
    assert plain == bytes(Driven(runner_of(tiny("sd3")), CAT).finish().of(ImageData)[0].data)
    assert drawn(LoraChoice("ink", 0.0)) == plain
    full, half = drawn(LoraChoice("ink")), drawn(LoraChoice("ink", 0.5))
    assert len({plain, full, half}) == 3
    assert drawn(None) == plain, "and without it, it is as before"


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        ({"attention": "psychic"}, "no attention backend is called 'psychic'; there are .*native"),
        ({"attention": "sage"}, "'sage' cannot be used"),
        ({"loras": {"ink": "/nowhere/ink.safetensors"}}, "adapter 'ink'.*cannot be loaded"),
    ],
)
def test_what_is_not_there_is_named_at_start(
    how: dict[str, object], complaint: str, tiny: Tiny
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        runner_of(tiny("sd3"), **how)


def test_a_folder_without_a_pipeline_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model_index\.json"):
        Pipelines(DiffusionSettings(folder=str(tmp_path)))


@pytest.mark.parametrize("backend", ["native", "_native_math"])
def test_an_attention_backend_is_used(backend: str, tiny: Tiny) -> None:
    assert Driven(runner_of(tiny("flux"), attention=backend), CAT).finish().errors == [None]


def test_the_vae_works_in_tiles_where_it_can(tiny: Tiny) -> None:
    runner = runner_of(tiny("sd3"), vae_tiling=True, vae_slicing=True)
    assert runner.pipelines.base.vae.use_tiling
    assert runner.pipelines.base.vae.use_slicing


def test_relatives_share_the_weights(tiny: Tiny) -> None:
    pipelines = runner_of(tiny("flux")).pipelines
    edits = pipelines.for_use("image")
    assert edits is pipelines.for_use("image")
    assert edits.transformer is pipelines.base.transformer
    assert "image" in takes(edits)
    with pytest.raises(EngineError, match="FluxVideoToVideoPipeline"):
        pipelines.for_use("video")


def test_work_can_pause_before_blocks_and_in_a_vae_before_their_layers(
    tiny: Tiny,
) -> None:
    pipelines = Pipelines(DiffusionSettings(folder=str(tiny("sd3"))))
    points = 0

    def point() -> None:
        nonlocal points
        points += 1

    pipelines.add_points(point)
    pipe = pipelines.base
    with torch.no_grad():
        pipe.vae.decode(torch.zeros(1, 16, 4, 4))
    decoder = pipe.vae.decoder
    layers = sum(len(block.resnets) + len(block.upsamplers or ()) for block in decoder.up_blocks)
    middle = len(decoder.mid_block.resnets) + len(decoder.mid_block.attentions)
    assert points >= len(decoder.up_blocks) + layers + middle
    points = 0
    pipe(prompt="a cat", width=64, height=64, num_inference_steps=1, output_type="latent")
    encoders = (pipe.text_encoder, pipe.text_encoder_2, pipe.text_encoder_3)
    blocks = sum(each.config.num_hidden_layers for each in encoders)
    assert points >= blocks + len(pipe.transformer.transformer_blocks)
