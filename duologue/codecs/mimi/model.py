"""The codec as a whole: weights of both directions, made into streams."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from duologue.codecs.mimi.checkpoint import load_tensors
from duologue.codecs.mimi.config import MimiConfig
from duologue.codecs.mimi.convolution import Convolution, DepthwiseUpsampling
from duologue.codecs.mimi.quantizer import SplitQuantizer
from duologue.codecs.mimi.seanet import decoder_stages, encoder_stages
from duologue.codecs.mimi.streams import (
    DecoderStream,
    DecoderWeights,
    EncoderStream,
    EncoderWeights,
)
from duologue.codecs.mimi.transformer import TransformerLayer


class Mimi:
    """A codec whose weights are loaded. Streams of any number share them."""

    __slots__ = ("_decoder", "_encoder", "config", "device")

    def __init__(self, encoder: EncoderWeights, decoder: DecoderWeights) -> None:
        self._encoder = encoder
        self._decoder = decoder
        self.config = encoder.config
        self.device = encoder.downsampling.matrix.device

    @classmethod
    def load(
        cls,
        path: Path,
        config: MimiConfig | None = None,
        *,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> Mimi:
        """Read a checkpoint in the published layout.

        Args:
            dtype: Of convolutions and transformers; the quantizer stays in float32.

        Raises:
            ConfigError: The file cannot be read, or does not fit the configuration.
        """
        config = config or MimiConfig()
        tensors = load_tensors(path, config, device)

        def stored(name: str) -> Tensor:
            return tensors[name]

        def named(name: str) -> Tensor:
            return tensors[name].to(dtype)

        def layers(side: str) -> tuple[TransformerLayer, ...]:
            names = (f"{side}.transformer.layers.{index}" for index in range(config.layers))
            return tuple(TransformerLayer.load(named, name) for name in names)

        quantizer = SplitQuantizer.load(config, stored)
        downsampling = named("downsample.conv.conv.conv.weight")
        return cls(
            EncoderWeights(
                config,
                encoder_stages(config, named),
                layers("encoder_transformer"),
                Convolution.plain(downsampling, stride=config.positions_per_frame),
                quantizer,
            ),
            DecoderWeights(
                config,
                decoder_stages(config, named),
                layers("decoder_transformer"),
                DepthwiseUpsampling.of(named("upsample.convtr.convtr.convtr.weight")),
                quantizer,
            ),
        )

    def encoder(self, slots: int, *, max_frames: int = 1) -> EncoderStream:
        """Allocate the state of ``slots`` streams, for steps of at most ``max_frames`` frames."""
        return EncoderStream(self._encoder, slots, max_frames)

    def decoder(self, slots: int, *, max_frames: int = 1) -> DecoderStream:
        """Allocate the state of ``slots`` streams, for steps of at most ``max_frames`` frames."""
        return DecoderStream(self._decoder, slots, max_frames)

    def encode(self, pcm: Tensor) -> Tensor:
        """Encode whole recordings at once. Memory grows with the square of their length.

        Shapes:
            pcm: [B, n * frame_samples]
            returns: [B, codebooks, n] int64
        """
        slots, samples = pcm.shape
        frames = max(1, samples // self.config.frame_samples)
        return self.encoder(slots, max_frames=frames).step(pcm, self._all(slots))

    def decode(self, codes: Tensor) -> Tensor:
        """Decode whole recordings at once. Memory grows with the square of their length.

        Shapes:
            codes: [B, codebooks, n] int64
            returns: [B, n * frame_samples] float32
        """
        slots, _, frames = codes.shape
        return self.decoder(slots, max_frames=max(1, frames)).step(codes, self._all(slots))

    def _all(self, slots: int) -> Tensor:
        return torch.ones(slots, dtype=torch.bool, device=self.device)
