"""Records what the reference implementation makes of random weights, or compares at true size.

Needs the package ``moshi`` 0.2.13, so it runs in an environment of its own (``make parity``):

    python -m tests.golden.mimi.record             write the golden files of the tests
    python -m tests.golden.mimi.record --compare   hold ours against the reference at true size

The reference is run on whole recordings. Frame by frame it departs from that past the window of 250
positions: its ring has 250 rows, so the first position of a frame, written together with the
second, finds 249 of them. ``--compare`` shows how far.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from moshi.models.compression import MimiModel
from moshi.models.loaders import _quantizer_kwargs, _seanet_kwargs, _transformer_kwargs
from moshi.modules import SEANetDecoder, SEANetEncoder
from moshi.modules.transformer import ProjectedTransformer
from moshi.quantization import SplitResidualVectorQuantizer
from safetensors.torch import load_file, save_file
from torch import Tensor

from duologue.codecs.mimi import Mimi, MimiConfig, save_random
from tests.golden.mimi.sizes import TINY

FOLDER = Path(__file__).parent
FRAMES = 150
"""12 s: past the window of 125 frames."""

LEAST_DB = 100


def reference(path: Path, config: MimiConfig) -> MimiModel:
    seanet = _seanet_kwargs | {
        "dimension": config.dimension,
        "n_filters": config.filters,
        "ratios": list(config.ratios),
        "compress": config.compression,
        "kernel_size": config.kernel,
        "residual_kernel_size": config.residual_kernel,
        "last_kernel_size": config.last_kernel,
    }
    transformer = _transformer_kwargs | {
        "d_model": config.dimension,
        "num_heads": config.heads,
        "num_layers": config.layers,
        "context": config.context,
        "max_period": config.rope_base,
        "dim_feedforward": config.feed_forward,
        "input_dimension": config.dimension,
        "output_dimensions": [config.dimension],
    }
    quantizer = _quantizer_kwargs | {
        "dimension": config.codebook_dimension,
        "n_q": config.stored_codebooks,
        "bins": config.codebook_size,
        "input_dimension": config.dimension,
        "output_dimension": config.dimension,
    }
    encoder = SEANetEncoder(**seanet)
    model = MimiModel(
        encoder,
        SEANetDecoder(**seanet),
        SplitResidualVectorQuantizer(**quantizer),
        channels=1,
        sample_rate=config.sample_rate_hz,
        frame_rate=config.sample_rate_hz / config.frame_samples,
        encoder_frame_rate=config.sample_rate_hz / encoder.hop_length,
        causal=True,
        resample_method="conv",
        encoder_transformer=ProjectedTransformer(device="cpu", **transformer),
        decoder_transformer=ProjectedTransformer(device="cpu", **transformer),
    ).eval()
    model.load_state_dict(load_file(path))
    model.set_num_codebooks(config.codebooks)
    return model


def recording(config: MimiConfig) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return 0.3 * torch.randn(1, FRAMES * config.frame_samples, generator=generator)


def record() -> None:
    path = FOLDER / "checkpoint.safetensors"
    save_random(path, TINY, seed=1)
    pcm = recording(TINY)
    model = reference(path, TINY)
    codes = model.encode(pcm[:, None])
    decoded = model.decode(codes)[:, 0]
    save_file(
        {"pcm": pcm, "codes": codes.to(torch.int16).contiguous(), "decoded": decoded.contiguous()},
        FOLDER / "outputs.safetensors",
    )
    print(f"recorded {FRAMES} frames of {TINY.frame_samples} samples in {FOLDER}")


def compare() -> None:
    config = MimiConfig()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.safetensors"
        save_random(path, config, seed=1)
        ours, theirs = Mimi.load(path, config), reference(path, config)
    pcm = recording(config)
    codes = theirs.encode(pcm[:, None])
    decoded = theirs.decode(codes)[:, 0]
    on = torch.ones(1, dtype=torch.bool)
    size = config.frame_samples
    encoder, decoder = ours.encoder(1), ours.decoder(1)
    streamed = [encoder.step(each, on) for each in pcm.split(size, 1)]
    played = [decoder.step(each, on) for each in codes.split(1, 2)]
    distinct = [int(row.unique().numel()) for row in codes[0]]
    print(f"{FRAMES} frames, true size; distinct codes per codebook: {distinct}")
    alike = True
    for name, got_codes, got_pcm in (
        ("whole recording", ours.encode(pcm), ours.decode(codes)),
        ("frame by frame", torch.cat(streamed, 2), torch.cat(played, 1)),
    ):
        close = decibels(got_pcm, decoded)
        alike &= torch.equal(got_codes, codes) and close > LEAST_DB
        print(f"ours, {name}: codes equal {share(got_codes, codes)}, samples {close:.1f} dB")
    with theirs.streaming(1):
        theirs_streamed = torch.cat([theirs.encode(p[:, None]) for p in pcm.split(size, 1)], 2)
        theirs_played = torch.cat([theirs.decode(each)[:, 0] for each in codes.split(1, 2)], 1)
    inside = config.context // config.positions_per_frame
    print("the reference, frame by frame against whole:")
    for name, codes_part, samples_part in (
        ("within", slice(inside), slice(inside * size)),
        ("past", slice(inside, None), slice(inside * size, None)),
    ):
        equal = share(theirs_streamed[..., codes_part], codes[..., codes_part])
        close = decibels(theirs_played[:, samples_part], decoded[:, samples_part])
        print(f"  {name} the window: codes equal {equal}, samples {close:.1f} dB")
    if not alike:
        raise SystemExit(
            f"ours is not the reference's: equal codes and {LEAST_DB} dB are asked for"
        )


def share(got: Tensor, wanted: Tensor) -> str:
    return f"{int((got == wanted).sum())} of {wanted.numel()}"


def decibels(got: Tensor, wanted: Tensor) -> float:
    return float(20 * torch.log10(wanted.norm() / (got - wanted).norm()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compare", action="store_true", help="compare at true size")
    torch.set_grad_enabled(False)
    (compare if parser.parse_args().compare else record)()
