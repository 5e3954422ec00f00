"""A Qwen3-Omni that answers what a test wants: its thinker goes on as a script says.

All else of it is as it was: its talker says these words, and its encoders sense.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

_NEVER_WRITTEN = range(0xF8, 0x100)
"""Bytes that no text has; their tokens become the pieces of the script."""

CALL = ("\n<tool_call>", '\n{"name": "look", ', '"arguments": {"at": "you"}}', "\n</tool_call>")


def scripted(tiny: Path, folder: Path, pieces: Sequence[str]) -> Path:
    """Copy a tiny checkpoint to a folder; whatever it is told, its answer is these pieces."""
    shutil.copytree(tiny, folder)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    start, *_ = tokenizer.encode("\n").ids
    end = tokenizer.token_to_id("<|im_end|>")
    outline = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = outline["model"]["vocab"]
    numbers = []
    for byte, piece in zip(_NEVER_WRITTEN, pieces, strict=False):
        numbers.append(vocabulary.pop(chr(byte)))
        spelt = "".join(_letter(each) for each in piece.encode())
        vocabulary[spelt] = numbers[-1]
    assert len(numbers) == len(pieces)
    (folder / "tokenizer.json").write_text(json.dumps(outline))

    file = folder / "model.safetensors"
    weights = load_file(file)
    for name, weight in weights.items():
        if name.startswith("thinker.model.layers.") and ("o_proj" in name or "down_proj" in name):
            weight.zero_()  # so that only the last word counts
    words = weights["thinker.model.embed_tokens.weight"]
    weights["thinker.model.norm.weight"].fill_(1)
    head = weights["thinker.lm_head.weight"].zero_()
    chain = [start, *numbers, end]
    for before, after in pairwise(chain):
        head[after] = words[before] / words[before].norm()
    save_file({name: weight.contiguous() for name, weight in weights.items()}, file)
    return folder


def _letter(byte: int) -> str:
    """How byte-level tokenizers write a byte, of those that are in scripts."""
    return {0x20: "\u0120", 0x0A: "\u010a"}.get(byte) or chr(byte)
