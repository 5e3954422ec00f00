"""What the narrow modes of a lockstep model change: figures for weights that somebody has.

The wide model holds a call with a recording and speaks as it always does. Then it and each mode
read the same tokens, those of that call, and say at every position what they expect next: so a mode
is judged by what it makes of one position, and not by a call that has gone another way long ago.
What the figures mean for an ear, they do not say. This module must not know files or terminals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.codecs.mimi import Mimi
from duologue.core.errors import ConfigError
from duologue.engines.models.moshi_lm.token_grid import Frame, Row, rows
from duologue.engines.runners.streaming_lm.eight_bits import narrow_layers
from duologue.engines.runners.streaming_lm.engine import EngineLimits, FrameEngine
from duologue.engines.runners.streaming_lm.frame_step import Network
from duologue.engines.runners.streaming_lm.opening import Opening
from duologue.engines.runners.streaming_lm.pages import PageLimits
from duologue.engines.runners.streaming_lm.prepared import Samples
from duologue.engines.runners.streaming_lm.teacher_forcing import (
    CHUNK,
    PAGE_FRAMES,
    Expected,
    expected,
)
from duologue.kernels.scaled import FP8

SEED = 20
"""What the wide model says is drawn by this, so that a comparison can be made again."""

Progress = Callable[[str, int, int], None]
"""Is told what is done, how many frames of it are, and of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """What is kept in fewer bits; the names are those of the settings."""

    name: str
    eight_bit_kv: bool = False
    eight_bit_weights: bool = False
    narrow_codec: bool = False


MODES = (
    Mode(name="eight_bit_kv", eight_bit_kv=True),
    Mode(name="narrow_codec", narrow_codec=True),
    Mode(name="eight_bit_weights", eight_bit_weights=True),
    Mode(name="all three", eight_bit_kv=True, eight_bit_weights=True, narrow_codec=True),
)
"""Those with wide weights come first: the wide ones make room for the narrow ones then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How near a mode is to the wide model.

    Args:
        text_equal: Share of positions at which both hold the same text token for the likeliest;
            ``first_code_equal``: of the first codebook, which carries what is said;
            ``codes_equal``: of all codebooks.
        text_kl, codes_kl: Mean divergence of what is expected next from what the wide model
            expects, in nats for each token; ``text_kl_p99``: exceeded at one position in a hundred.
        heard_equal: Share of the codes of the recording that the codec makes alike; ``None``:
            the codec is the same.
        codec_snr_db: Of the call decoded by the narrow codec, against the wide one.
    """

    mode: str
    text_equal: float
    first_code_equal: float
    codes_equal: float
    text_kl: float
    text_kl_p99: float
    codes_kl: float
    heard_equal: float | None = None
    codec_snr_db: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All modes.

    Args:
        frames: Positions that were judged.
        wide: The type that the model is in without any mode.
    """

    frames: int
    wide: str
    modes: tuple[Likeness, ...]


class _Call(NamedTuple):
    """What was read in the call.

    Args:
        rows: Of every position: embeddings of a voice, or tokens.
        first: The position of the first frame.
    """

    rows: list[Row | Tensor]
    first: int


def compare(
    network: Network, narrow: Mimi, opening: Opening, speech: Samples, tell: Progress
) -> Comparison:
    """Let the wide model hold a call, and hold every mode against it.

    Args:
        network: In bfloat16, wide; of its temporal layers nothing is left in the end.
        narrow: The same codec in bfloat16.
        opening: How the call begins.
        speech: What the person says, [n] float32 at the model's rate; cut to whole frames.

    Raises:
        ConfigError: It is shorter than two frames, or call and beginning exceed the window.
    """
    codec_config = network.codec.config
    size = codec_config.frame_samples
    frame_ms = 1000 * size // codec_config.sample_rate_hz
    count = len(speech) // size
    longest = network.config.window - opening.positions
    if not 2 <= count <= longest:
        raise ConfigError(
            f"the recording has {count} frames of {frame_ms} ms; it must have 2 to {longest}, so"
            " that all of it is seen at once"
        )
    heard = list(speech[: count * size].reshape(count, size))
    frames = _hold_call(network, opening, heard, tell)
    call = _written(network, opening, frames)
    wide = expected(network, network.dtype, call.rows, call.rows, call.first, _part("wide", tell))
    codec = _CodecLikeness.of(network.codec, narrow, heard, frames)
    layers = list(network.weights.layers)
    found = []
    for mode in MODES:
        if mode.eight_bit_weights and not network.narrow:
            # One by one, so that both kinds never stand in memory whole.
            network = replace(
                network, weights=replace(network.weights, layers=()), narrow=narrow_layers(layers)
            )
        read = _written(network, opening, codec.frames) if mode.narrow_codec else call
        kept = FP8 if mode.eight_bit_kv else network.dtype
        got = expected(network, kept, read.rows, call.rows, call.first, _part(mode.name, tell))
        likeness = _likeness(mode.name, wide, got)
        if mode.narrow_codec:
            likeness = replace(likeness, heard_equal=codec.heard_equal, codec_snr_db=codec.snr_db)
        found.append(likeness)
    return Comparison(count - 1, str(network.dtype).removeprefix("torch."), tuple(found))


def _hold_call(
    network: Network, opening: Opening, heard: Sequence[Samples], tell: Progress
) -> list[Frame]:
    engine = FrameEngine(
        network,
        EngineLimits(
            slots=1, pages=_limits(network, opening, len(heard)), buckets=(1,), chunks=(CHUNK,)
        ),
    )
    engine.warm_up()
    slot = engine.open(replace(opening, seed=SEED, name=""))
    while not engine.is_live(slot):
        engine.prefill()
    frames = []
    for number, pcm in enumerate(heard, 1):
        (said,) = engine.step([slot], [pcm])
        frames.append(Frame(said.text, said.said, said.heard))
        tell("the call", number, len(heard))
    return frames


def _part(what: str, tell: Progress) -> Callable[[int, int], None]:
    return lambda done, total: tell(what, done, total)


def _limits(network: Network, opening: Opening, frames: int) -> PageLimits:
    window = network.config.window
    pages = -(-min(window, opening.positions + frames) // PAGE_FRAMES) + CHUNK // PAGE_FRAMES + 3
    return PageLimits(pages, page_frames=PAGE_FRAMES, window=window, chunk=CHUNK, growth_frames=1)


def _written(network: Network, opening: Opening, frames: list[Frame]) -> _Call:
    voice: list[Row | Tensor] = [] if opening.voice is None else list(opening.voice)
    said = rows(network.config, frames, opening.prompt.last)
    return _Call([*voice, *opening.prompt.rows, *said], opening.positions)


def _likeness(mode: str, wide: Expected, got: Expected) -> Likeness:
    text_kl, codes_kl = _divergence(wide.text, got.text), _divergence(wide.codes, got.codes)
    same_codes = (wide.codes.argmax(-1) == got.codes.argmax(-1)).float()
    return Likeness(
        mode=mode,
        text_equal=_mean(wide.text.argmax(-1) == got.text.argmax(-1)),
        first_code_equal=_mean(same_codes[:, 0]),
        codes_equal=_mean(same_codes),
        text_kl=_mean(text_kl),
        text_kl_p99=float(torch.quantile(text_kl, 0.99)),
        codes_kl=_mean(codes_kl),
    )


def _divergence(wide: Tensor, got: Tensor) -> Tensor:
    # Rounding may make it a little less than nothing.
    return F.kl_div(got, wide, reduction="none", log_target=True).sum(-1).clamp(min=0.0)


def _mean(values: Tensor) -> float:
    return float(values.float().mean())


@dataclass(frozen=True, slots=True)
class _CodecLikeness:
    """What the narrow codec makes of the call: ``frames`` with what it hears in the recording."""

    frames: list[Frame]
    heard_equal: float
    snr_db: float

    @classmethod
    def of(
        cls, wide: Mimi, narrow: Mimi, heard: Sequence[Samples], frames: list[Frame]
    ) -> _CodecLikeness:
        codes = _encode(narrow, heard)
        exact = np.array([frame.heard for frame in frames])
        said = torch.tensor([frame.said for frame in frames]).to(wide.device)
        noise, power = 0.0, 0.0
        for a, b in zip(_decode(wide, said), _decode(narrow, said), strict=True):
            power += float(a.square().sum())
            noise += float((a - b).square().sum())
        with np.errstate(divide="ignore"):
            snr_db = 10 * float(np.log10(np.float64(power) / noise)) if power else 0.0
        taken = [
            frame._replace(heard=tuple(code))
            for frame, code in zip(frames, codes.tolist(), strict=True)
        ]
        return cls(taken, float((codes == exact).mean()), snr_db)


def _encode(
    codec: Mimi, heard: Sequence[Samples]
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Encode frame by frame, as a call does: [frames, codebooks]."""
    stream, slots = codec.encoder(1), torch.zeros(1, dtype=torch.int64, device=codec.device)
    made = [
        stream.step_rows(torch.from_numpy(pcm)[None].to(codec.device), slots)[0, :, 0].cpu().numpy()
        for pcm in heard
    ]
    return np.stack(made)


def _decode(codec: Mimi, codes: Tensor) -> list[Tensor]:
    stream, slots = codec.decoder(1), torch.zeros(1, dtype=torch.int64, device=codec.device)
    return [stream.step_rows(frame[None, :, None].long(), slots).double() for frame in codes]
