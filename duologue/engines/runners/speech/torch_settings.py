"""What the settings of a speech model mean for torch. This module must not know models."""

from __future__ import annotations

import torch

from duologue.core.errors import ConfigError
from duologue.engines.runners.speech.loading import TorchSettings

_TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def dtype_of(settings: TorchSettings) -> torch.dtype:
    """Return the type of the talker's numbers."""
    return _TYPES[settings.dtype]


def device_of(settings: TorchSettings) -> torch.device:
    """Return the device.

    Raises:
        ConfigError: There is no such device here.
    """
    try:
        return torch.zeros(0, device=settings.device).device
    except (RuntimeError, AssertionError) as exc:
        raise ConfigError(f"device is {settings.device}, which torch cannot use here") from exc


def use_threads(settings: TorchSettings) -> None:
    """Let torch use so many threads of the CPU."""
    if settings.threads:
        torch.set_num_threads(settings.threads)
