"""Holds our language model against the package ``moshi`` at its true size, on random weights.

Both have the same ones and read the same tokens, past the end of their window, and say what they
expect next. Where the reference's two likeliest tokens are further apart than rounding, ours must
choose the same one.
Needs the package ``moshi`` 0.2.13 and, at true size, a GPU with 45 GB (``make parity-gpu``).

It runs in parts, each of which takes minutes; a part whose result is there is not made again:

    python -m tests.golden.moshi_lm.true_size weights reference ours compare --out build/parity

``--size tiny --device cpu`` does the same with a network for which any machine is large enough.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from duologue.codecs.mimi import Mimi
from duologue.codecs.mimi import save_random as save_random_codec
from duologue.engines.models.moshi_lm.checkpoint import load_weights
from duologue.engines.models.moshi_lm.config import MOSHI, MoshiConfig, tiny
from duologue.engines.models.moshi_lm.layout import Layout
from duologue.engines.models.moshi_lm.token_grid import Row
from duologue.engines.runners.streaming_lm.frame_step import Network
from duologue.engines.runners.streaming_lm.loading import TINY_CODEC
from duologue.engines.runners.streaming_lm.teacher_forcing import Read, expected

PARTS = ("weights", "reference", "ours", "compare")
APART = 1e-4
"""Where the reference's two likeliest are nearer to each other, rounding may choose."""

SEED = 1
BEYOND = 100
"""Positions read past the window."""

STEP = 256
"""Positions whose codes the reference judges at once."""


@dataclass(frozen=True)
class Run:
    """One comparison; all of its files carry its name."""

    size: str
    device: str
    dtype: str
    out: Path

    @property
    def config(self) -> MoshiConfig:
        return MOSHI if self.size == "true" else tiny(window=48)

    @property
    def checkpoint(self) -> Path:
        return self.out / f"{self.size}.safetensors"

    def result(self, part: str) -> Path:
        return self.out / f"{self.size}-{self.dtype}-{part}.npz"

    @property
    def type(self) -> torch.dtype:
        found = getattr(torch, self.dtype)
        assert isinstance(found, torch.dtype)
        return found

    def rows(self) -> list[Row]:
        """Tokens of every position: those before the first frame, then any."""
        config = self.config
        numbers = np.random.default_rng(SEED)
        count = config.window + BEYOND
        text = numbers.integers(config.text_card, size=(count, 1))
        codes = numbers.integers(config.audio_card, size=(count, 2 * config.codebooks))
        made = np.concatenate((text, codes), axis=1)
        made[0] = [config.text_initial, *[config.audio_initial] * (2 * config.codebooks)]
        return [tuple(row) for row in made.tolist()]


def make_weights(run: Run) -> None:
    """Write a checkpoint in the published layout, as large as the published one."""
    generator = torch.Generator(run.device).manual_seed(SEED)
    tensors = {}
    for name, shape in Layout("fused", run.config.codebooks).shapes(run.config).items():
        noise = torch.randn(shape, generator=generator, device=run.device)
        if name.endswith(".alpha"):
            noise = 1 + 0.1 * noise
        elif "emb" not in name:
            noise *= math.sqrt(1 / shape[1])
        tensors[name] = noise.bfloat16().cpu()
    unfinished = run.checkpoint.with_suffix(".part")
    save_file(tensors, unfinished)
    unfinished.rename(run.checkpoint)


def ask_reference(run: Run) -> None:
    """Note what the package expects most, and by how much."""
    from tests.golden.moshi_lm.record import reference

    config = run.config
    tensors = load_file(run.checkpoint)
    model = reference(config, tensors, device=run.device, dtype=run.type)
    del tensors
    rows = torch.tensor(run.rows(), device=run.device).t()[None]
    read, following = rows[:, :, :-1], rows[:, :, 1:]
    hidden, text = model.forward_text(read)
    best, gaps = [_two_best(text[0, 0])], []
    codes = []
    for begin in range(0, hidden.shape[1], STEP):
        part = slice(begin, begin + STEP)
        logits = model.forward_depformer_training(following[:, :, part], hidden[:, part])
        codes.append([_two_best(each) for each in logits[0, : config.codebooks]])
    for book in range(config.codebooks):
        tokens = torch.cat([part[book][0] for part in codes])
        best.append((tokens, torch.cat([part[book][1] for part in codes])))
    gaps = torch.stack([gap for _, gap in best], dim=1)
    chosen = torch.stack([token for token, _ in best], dim=1)
    np.savez(run.result("reference"), chosen=chosen.cpu().numpy(), gaps=gaps.cpu().numpy())


def _two_best(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The likeliest of each row, and how far the next one lies below."""
    top = logits.float().topk(2, dim=-1)
    return top.indices[:, 0], top.values[:, 0] - top.values[:, 1]


def ask_ours(run: Run) -> None:
    """Note what ours expects most, read in chunks through pages that slide."""
    config = run.config
    weights = load_weights(run.checkpoint, config, device=run.device, dtype=run.type)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mimi.safetensors"
        save_random_codec(path, TINY_CODEC, seed=SEED)
        codec = Mimi.load(path, TINY_CODEC, device=run.device)
    rows: list[Read] = list(run.rows())
    found = expected(Network(config, weights, codec), run.type, rows, rows, 0)
    text, codes = found.text.argmax(-1), found.codes.argmax(-1)
    chosen = torch.cat((text[:, None], codes), dim=1)
    np.savez(run.result("ours"), chosen=chosen.cpu().numpy())


def compare(run: Run) -> None:
    """Say whether they choose alike, wherever rounding cannot choose.

    In narrower types than float32 rounding is coarser than ``APART``: there it only tells.
    """
    wanted, got = np.load(run.result("reference")), np.load(run.result("ours"))
    equal = wanted["chosen"] == got["chosen"]
    clear = wanted["gaps"] > APART
    wrong = clear & ~equal
    figures = {
        "size": run.size,
        "dtype": run.dtype,
        "positions": len(equal),
        "choices": int(equal.size),
        "clear": int(clear.sum()),
        "equal_of_clear": int((equal & clear).sum()),
        "equal_of_all": int(equal.sum()),
        "widest_gap_at_a_difference": float(wanted["gaps"][~equal].max(initial=0.0)),
    }
    print(f"RESULT {json.dumps(figures)}")
    if run.dtype == "float32" and wrong.any():
        at = np.argwhere(wrong)[:5].tolist()
        raise SystemExit(f"ours chooses otherwise, first at (position, stream) {at}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--out", type=Path, default=Path("build/parity"))
    parser.add_argument("--size", choices=("true", "tiny"), default="true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    args = parser.parse_args()
    run = Run(args.size, args.device, args.dtype, args.out)
    run.out.mkdir(parents=True, exist_ok=True)
    # What is compared is float32 as it is, not the shortened one of tensor cores.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    jobs = {
        "weights": (make_weights, run.checkpoint),
        "reference": (ask_reference, run.result("reference")),
        "ours": (ask_ours, run.result("ours")),
    }
    for part in args.parts:
        if part == "compare":
            compare(run)
            continue
        make, result = jobs[part]
        if result.exists():
            print(f"{part}: {result} is there already")
            continue
        started = time.perf_counter()
        with torch.no_grad():
            make(run)
        print(f"{part}: {result}, {time.perf_counter() - started:.1f} s", flush=True)


if __name__ == "__main__":
    main()
