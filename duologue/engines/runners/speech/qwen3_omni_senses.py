"""What Qwen3-Omni's thinker sees and hears: pictures and recordings as what stands among its words.

The encoders are the library's, with the weights of the checkpoint; preprocessing is by the
checkpoint's own ``preprocessor_config.json``. This module must not know conversations.

Source:
    Xu et al., "Qwen3-Omni technical report" (2025), section 2; features of lower layers of the
    vision encoder as in Meng et al., "DeepStack" (2024).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import WhisperFeatureExtractor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.qwen3_omni_moe.configuration_qwen3_omni_moe import (
    Qwen3OmniMoeAudioEncoderConfig,
    Qwen3OmniMoeVisionEncoderConfig,
)
from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import (
    Qwen3OmniMoeAudioEncoder,
    Qwen3OmniMoeVisionEncoder,
)

from duologue.codecs.pictures import Pixels
from duologue.core.errors import ConfigError
from duologue.engines.models.checkpoint_folder import CheckpointFolder

HEARD_RATE_HZ = 16_000


@dataclass(frozen=True, slots=True)
class Sensed:
    """A picture or a recording.

    Shapes:
        features: [N, D], in place of words
        deep: [N, D] each, added to what comes of the first layers

    Args:
        grid: Rows and columns of a picture, ``N`` in all; ``None``: it is a recording.
    """

    features: Tensor
    deep: Sequence[Tensor] = ()
    grid: tuple[int, int] | None = None


class Eyes:
    """Sees pictures."""

    def __init__(self, folder: CheckpointFolder) -> None:
        section = folder.section("thinker_config", "vision_config")
        encoder = Qwen3OmniMoeVisionEncoder(Qwen3OmniMoeVisionEncoderConfig(**section))
        self._encoder = _loaded(encoder, folder, "thinker.visual.")
        self._prepare = _preprocessor(Qwen2VLImageProcessorPil, folder)
        self._weight = next(self._encoder.parameters())

    def see(self, pixels: Pixels) -> Sensed:
        """Look at a picture.

        Shapes:
            pixels: [height, width, 3] uint8
        """
        prepared = self._prepare([pixels], return_tensors="pt")
        grid = prepared["image_grid_thw"].to(self._weight.device)
        patches = prepared["pixel_values"].to(self._weight.device, self._weight.dtype)
        seen = self._encoder(patches, grid_thw=grid)
        merged = self._encoder.spatial_merge_size
        _, rows, columns = grid[0].tolist()
        return Sensed(
            seen.pooler_output, seen.deepstack_features, (rows // merged, columns // merged)
        )


class Ears:
    """Hears recordings."""

    def __init__(self, folder: CheckpointFolder) -> None:
        section = folder.section("thinker_config", "audio_config")
        encoder = Qwen3OmniMoeAudioEncoder(Qwen3OmniMoeAudioEncoderConfig(**section))
        self._encoder = _loaded(encoder, folder, "thinker.audio_tower.")
        self._prepare = _preprocessor(WhisperFeatureExtractor, folder)
        self._weight = next(self._encoder.parameters())

    def hear(self, samples: NDArray[Any]) -> Sensed:
        """Listen to a recording.

        Shapes:
            samples: [T] float32 at ``HEARD_RATE_HZ``, -1 to 1
        """
        prepared = self._prepare(
            [samples],
            sampling_rate=HEARD_RATE_HZ,
            padding=True,
            truncation=False,
            return_attention_mask=True,
            return_tensors="pt",
        )
        frames = prepared["attention_mask"][0].bool()
        mel = prepared["input_features"][0][:, frames].to(self._weight.device, self._weight.dtype)
        length = torch.tensor([mel.shape[1]], device=mel.device)
        heard = self._encoder(mel, feature_lens=length)
        return Sensed(heard.last_hidden_state)


def _loaded(encoder: Any, folder: CheckpointFolder, prefix: str) -> Any:
    """Give an encoder the checkpoint's weights.

    Raises:
        ConfigError: Some are missing, or not its own.
    """
    weights = {name.removeprefix(prefix): folder.tensor(name) for name in folder.names(prefix)}
    try:
        # Assigned, so that buffers keep the precision that the library gives them.
        encoder.load_state_dict(weights, assign=True)
    except RuntimeError as exc:
        raise ConfigError(f"{folder.path}: {prefix}*: {exc}") from exc
    device = next(iter(weights.values())).device
    module: nn.Module = encoder.to(device).eval()
    return module.requires_grad_(False)


def _preprocessor(kind: Any, folder: CheckpointFolder) -> Any:
    try:
        return kind.from_pretrained(folder.path)
    except (OSError, ValueError) as exc:
        raise ConfigError(
            f"{folder.path} has no preprocessor_config.json for what the model sees and hears; "
            "without it, set pictures: 0 and recordings_s: 0"
        ) from exc
