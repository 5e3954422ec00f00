from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import diffusers as df

from tests.fakes.tiny_diffusers import images, sounds, videos

MAKERS: Mapping[str, Callable[[], df.DiffusionPipeline]] = {
    "sd3": images.sd3,
    "flux": images.flux,
    "qwenimage": images.qwenimage,
    "wan": videos.wan,
    "wan22": videos.wan22,
    "ltx": videos.ltx,
    "hunyuanvideo": videos.hunyuanvideo,
    "stableaudio": sounds.stableaudio,
    "audioldm2": sounds.audioldm2,
}


def make(name: str, folder: Path) -> Path:
    """Write a pipeline, as ``save_pretrained`` does, and return its folder."""
    MAKERS[name]().save_pretrained(folder)
    return folder
