"""From files to a network on a device, with a line of progress for each part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import structlog
import torch

from duologue.codecs.mimi import Mimi, MimiConfig
from duologue.core.errors import ConfigError
from duologue.engines.models.moshi_lm.checkpoint import load_weights
from duologue.engines.models.moshi_lm.config import MOSHI, PERSONAPLEX, MoshiConfig, tiny
from duologue.engines.runners.streaming_lm.eight_bits import narrow_layers
from duologue.engines.runners.streaming_lm.engine import EngineLimits
from duologue.engines.runners.streaming_lm.frame_step import Network
from duologue.engines.runners.streaming_lm.settings import StreamingLmSettings, engine_limits

log = structlog.get_logger(__name__)

_MB = 1_000_000
_TENTH = 10

TINY_CODEC = MimiConfig(
    filters=4,
    dimension=32,
    layers=2,
    heads=2,
    feed_forward=64,
    codebook_dimension=8,
    stored_codebooks=8,
)
"""24 kHz and 12.5 Hz, as the published one."""

NETWORKS: dict[str, tuple[MoshiConfig, MimiConfig]] = {
    "moshi": (MOSHI, MimiConfig()),
    "personaplex": (PERSONAPLEX, MimiConfig()),
    "moshi-tiny": (tiny(text_card=400), TINY_CODEC),
}


def load_network(settings: StreamingLmSettings, dtype: torch.dtype | None = None) -> Network:
    """Read all weights.

    Args:
        dtype: Of the language model; None: bfloat16 on a GPU, float32 elsewhere.

    Raises:
        ConfigError: A file is missing or does not fit, or there is no such device.
    """
    device = _device(settings)
    config, _ = NETWORKS[settings.network]
    on_gpu = device.type == "cuda"
    told = -1

    def tell(read: int, total: int) -> None:
        nonlocal told
        tenths = read * _TENTH // total
        if tenths > told:
            told = tenths
            log.info("model_loading", network=settings.network, percent=tenths * _TENTH)

    weights = load_weights(
        Path(settings.weights),
        config,
        device=str(device),
        dtype=dtype or (torch.bfloat16 if on_gpu else torch.float32),
        progress=tell,
    )
    codec = load_codec(settings)
    if not settings.eight_bit_weights:
        return Network(config, weights, codec)
    layers = list(weights.layers)
    weights = replace(weights, layers=())
    return Network(config, weights, codec, narrow_layers(layers))


def load_codec(settings: StreamingLmSettings) -> Mimi:
    """Read the codec.

    Raises:
        ConfigError: Its file is missing or does not fit, or there is no such device.
    """
    _, config = NETWORKS[settings.network]
    return Mimi.load(
        Path(settings.codec),
        config,
        device=str(_device(settings)),
        dtype=torch.bfloat16 if settings.narrow_codec else torch.float32,
    )


def limits_for(settings: StreamingLmSettings, network: Network) -> EngineLimits:
    """Choose how many streams the device's memory holds.

    Raises:
        ConfigError: There is not room for a single stream.
    """
    config, device = network.config, network.device
    if device.type != "cuda":
        return engine_limits(settings, config.window, None)
    number_bytes = 1 if settings.eight_bit_kv else network.dtype.itemsize
    page_bytes = 2 * config.layers * config.dimension * settings.page_frames * number_bytes
    torch.cuda.empty_cache()
    free_bytes, _ = torch.cuda.mem_get_info(device)
    spare_bytes = free_bytes - settings.reserve_mb * _MB
    return engine_limits(settings, config.window, max(0, spare_bytes // page_bytes - 1))


def _device(settings: StreamingLmSettings) -> torch.device:
    try:
        device = torch.device(settings.device)
    except RuntimeError as error:
        raise ConfigError(f"there is no device {settings.device!r}: cpu, cuda or cuda:0") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"there is no GPU {settings.device!r} here: {torch.cuda.device_count()} can be used."
            " Set device to one of them, or to cpu."
        )
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"the device {settings.device!r} cannot run this model: cpu or cuda")
    return device
