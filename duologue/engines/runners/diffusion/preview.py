"""What an image looks like before it is finished: its latents, decoded as the pipeline would.

This module must not know who looks.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


def shown_at(steps: int, partials: int) -> dict[int, int]:
    """Return after which steps an unfinished image is shown, and the number of each view.

    They are spread evenly, and the last step is left to the image itself. Where there are fewer
    steps than views, some views are left out.
    """
    places = [round((number + 1) * steps / (partials + 1)) - 1 for number in range(partials)]
    wanted = dict.fromkeys(place for place in places if 0 <= place < steps - 1)
    return {place: number for number, place in enumerate(wanted)}


def decoded(pipe: Any, latents: torch.Tensor, width: int, height: int) -> NDArray[np.float32]:
    """Return the pictures of latents: [batch, height, width, 3], 0 to 1."""
    unpack = getattr(pipe, "_unpack_latents", None)
    if unpack is not None and len(inspect.signature(unpack).parameters) == 4:
        latents = unpack(latents, height, width, pipe.vae_scale_factor)
    vae, config = pipe.vae, pipe.vae.config
    latents = latents.to(vae.dtype)
    if config.get("latents_mean") is not None and config.get("latents_std") is not None:
        shape = (1, -1, *(1,) * (latents.ndim - 2))
        mean = torch.tensor(config.latents_mean).view(shape).to(latents)
        latents = latents * torch.tensor(config.latents_std).view(shape).to(latents) + mean
    else:
        latents = latents / config.scaling_factor + (config.get("shift_factor") or 0)
    with torch.no_grad():
        pictures = vae.decode(latents, return_dict=False)[0]
    if pictures.ndim == 5:
        pictures = pictures[:, :, 0]
    return np.asarray(pipe.image_processor.postprocess(pictures.detach(), output_type="np"))
