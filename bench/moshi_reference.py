"""The package ``moshi`` as it ships, with random weights, batched by hand.

Its encoder and its sampling glue are partly eager; graphs and compiled pieces are the package's
own. Rings are full of noise and past their wrap.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch

from bench.moshi_setups import WINDOW, facts, free_memory, spread
from bench.report import Row

BATCHES = (1, 64, 80)
FRAMES = 120
WARM_UP = 15


def measure() -> Iterator[Row]:
    from moshi.models import loaders
    from moshi.models.lm import LMGen, LMModel

    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    LMModel._init_weights = lambda self: None
    sizes = dict(loaders._lm_kwargs)
    sizes["dep_q"] = 8
    mimi = loaders.get_mimi(None, device="cuda", num_codebooks=8)
    for name, buffer in mimi.named_buffers():
        if "embedding_sum" in name:
            buffer.normal_()
        if "_initialized" in name:
            buffer.fill_(1)
    with torch.device("meta"):
        model = LMModel(device="meta", dtype=torch.bfloat16, **sizes)
    model = model.to_empty(device="cuda").to(torch.bfloat16).eval()
    for name, weight in model.named_parameters():
        if "alpha" in name:
            weight.fill_(1.0)
        elif weight.dim() > 1:
            weight.normal_(0, weight.shape[-1] ** -0.5)
    for batch in BATCHES:
        yield {
            "name": "package moshi 0.2.13, bf16, full window",
            "rows": batch,
            **_frames(mimi, LMGen(model), batch),
            **facts(),
        }
        model._stop_streaming()
        free_memory()


def _frames(mimi: object, generator: object, batch: int) -> Row:
    pcm = [torch.randn(batch, 1, 1920) * 0.1 for _ in range(4)]
    took = []
    with mimi.streaming(batch), generator.streaming(batch):  # type: ignore[attr-defined]
        for frame in range(5):
            _frame(mimi, generator, pcm[frame % 4])
        _fill(mimi, generator)
        for frame in range(WARM_UP + FRAMES):
            torch.cuda.synchronize()
            started = time.perf_counter()
            _frame(mimi, generator, pcm[frame % 4])
            torch.cuda.synchronize()
            if frame >= WARM_UP:
                took.append(time.perf_counter() - started)
    return spread(took)


def _frame(mimi: object, generator: object, pcm: torch.Tensor) -> object:
    codes = mimi.encode(pcm.cuda())  # type: ignore[attr-defined]
    tokens = generator.step(codes)  # type: ignore[attr-defined]
    if tokens is None:
        return None
    out = mimi.decode(tokens[:, 1:9].clamp(0, 2047))  # type: ignore[attr-defined]
    return out.cpu(), tokens[:, 0, 0].cpu()


def _fill(mimi: object, generator: object) -> None:
    """Make all rings as they are in a call older than the window."""
    transformers = (
        generator.lm_model.transformer,  # type: ignore[attr-defined]
        mimi.encoder_transformer.transformer,  # type: ignore[attr-defined]
        mimi.decoder_transformer.transformer,  # type: ignore[attr-defined]
    )
    for transformer in transformers:
        for layer in transformer.layers:
            state = layer.self_attn._streaming_state
            state.kv_cache.cache.normal_()
            state.kv_cache.end_offset.fill_(state.kv_cache.capacity + 500)
            state.offset.fill_(state.kv_cache.capacity + 500)
        state = transformer._streaming_state
        if hasattr(state, "offsets"):
            state.offsets.fill_(WINDOW + 500)
