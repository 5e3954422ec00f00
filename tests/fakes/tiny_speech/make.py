from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from tests.fakes.tiny_speech.csm import csm
from tests.fakes.tiny_speech.qwen3_omni import qwen3_omni
from tests.fakes.tiny_speech.vits import vits

# On shared cores, threads that wait for each other by spinning take seconds.
torch.set_num_threads(1)

MAKERS: Mapping[str, Callable[[Path], None]] = {"csm": csm, "qwen3_omni": qwen3_omni, "vits": vits}


def make(name: str, folder: Path) -> Path:
    """Write a model, as ``save_pretrained`` does, and return its folder."""
    MAKERS[name](folder)
    return folder
