"""Sizes, ids and delays of the published networks; needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SILENCE = (948, 243, 1178, 546, 1736, 1030, 1978, 2008)
"""What the codec makes of silence."""

SINE = (430, 1268, 381, 1611, 1095, 1495, 56, 472)
"""What the codec makes of a tone of 440 Hz: it stands for the person while a prompt is given."""

ZERO = -1
"""A token that adds nothing to the sum of embeddings."""

RMS_EPSILON = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class MoshiConfig:
    """The defaults are those of Moshi 7B.

    Source:
        Moshi paper, table 1; the delays are those of the published weights.
    """

    dimension: int = 4096
    heads: int = 32
    layers: int = 32
    hidden: int = 11_264
    """Channels inside the gated part of a layer."""
    window: int = 3000
    """How many frames attention sees, the current one included: 240 s."""
    rope_base: float = 10_000.0

    depth_dimension: int = 1024
    depth_heads: int = 16
    depth_layers: int = 6
    depth_hidden: int = 2816

    text_card: int = 32_000
    """Text tokens; the id after the last one stands for the time before the first frame."""
    audio_card: int = 2048
    """Codes of one codebook; the id after the last one stands for the time before the first."""
    codebooks: int = 8
    """Of each of the two voices."""
    delays: tuple[int, ...] = (0, 1, 1, 1, 1, 1, 1, 1)
    """How many positions later than the text the codes of a frame are written, in both voices."""

    text_padding: int = 3
    """The text token of a frame in which no word begins."""
    silent_text: tuple[int, ...] = (0, 3)
    """Text tokens that are not shown."""
    silence: tuple[int, ...] = SILENCE
    sine: tuple[int, ...] = SINE

    def __post_init__(self) -> None:
        for name, size, heads in (
            ("dimension", self.dimension, self.heads),
            ("depth_dimension", self.depth_dimension, self.depth_heads),
        ):
            if size % (2 * heads):
                raise ValueError(f"{name} {size} must be a multiple of twice its {heads} heads")
        if self.window < 1:
            raise ValueError(f"window is {self.window} frames, must be at least 1")
        if self.codebooks < 2:
            raise ValueError(f"codebooks is {self.codebooks}, must be at least 2")
        if len(self.delays) != self.codebooks or self.delays[0] or set(self.delays) - {0, 1}:
            raise ValueError(
                f"delays are {self.delays}: there must be {self.codebooks}, each 0 or 1, the"
                " first 0"
            )
        for name, codes in (("silence", self.silence), ("sine", self.sine)):
            if len(codes) != self.codebooks or not all(0 <= c < self.audio_card for c in codes):
                raise ValueError(
                    f"{name} must be {self.codebooks} codes below {self.audio_card}: {codes}"
                )

    @property
    def head_dimension(self) -> int:
        """Channels of one head of the temporal transformer."""
        return self.dimension // self.heads

    @property
    def depth_head_dimension(self) -> int:
        """Channels of one head of the depth transformer."""
        return self.depth_dimension // self.depth_heads

    @property
    def streams(self) -> int:
        """Tokens of a frame: text, what is said, what is heard. In a row they stand so."""
        return 1 + 2 * self.codebooks

    @property
    def text_initial(self) -> int:
        """The text token before the first frame."""
        return self.text_card

    @property
    def audio_initial(self) -> int:
        """The code before the first frame."""
        return self.audio_card


MOSHI = MoshiConfig()

PERSONAPLEX = MoshiConfig(window=2999)
"""The reference's ring hides its oldest cell once it has wrapped, so it sees one frame less."""


def tiny(
    *,
    window: int = 200,
    text_card: int = 100,
    audio_card: int = 2048,
    codebooks: int = 8,
    silence: Sequence[int] = SILENCE,
    sine: Sequence[int] = SINE,
) -> MoshiConfig:
    """Return the sizes of a network of a few hundred thousand weights, for tests."""
    return MoshiConfig(
        dimension=64,
        heads=4,
        layers=2,
        hidden=176,
        window=window,
        depth_dimension=32,
        depth_heads=4,
        depth_layers=2,
        depth_hidden=88,
        text_card=text_card,
        audio_card=audio_card,
        codebooks=codebooks,
        delays=(0, *[1] * (codebooks - 1)),
        silence=tuple(silence),
        sine=tuple(sine),
    )
