"""Mimi's decoder as the codec of a speech model. This module must not know which model."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from duologue.codecs.mimi.streams import DecoderStream, DecoderWeights
from duologue.engines.runners.speech.contract import Codes, Samples


class MimiCodec:
    """Implements ``Codec``; a stream is a slot.

    Args:
        longest: Most frames of a step.
    """

    def __init__(self, weights: DecoderWeights, slots: int, longest: int) -> None:
        self.rate_hz = weights.config.sample_rate_hz
        self.books = weights.config.codebooks
        self.slots = slots
        self._frame_samples = weights.config.frame_samples
        self._device = weights.upsampling.now.device
        self._decoder = DecoderStream(weights, slots, longest)
        self._free = list(range(slots))

    def begin(self) -> int:
        """Take a slot."""
        slot = self._free.pop()
        self._decoder.reset(slot)
        return slot

    def decode(self, streams: Sequence[int], codes: Sequence[Codes]) -> Sequence[Samples]:
        """Sound the next frames; those of as many frames share a step."""
        results: dict[int, Samples] = {}
        for frames in {len(each) for each in codes}:
            rows = [at for at, each in enumerate(codes) if len(each) == frames]
            stacked = torch.stack([torch.from_numpy(codes[at].T.astype("int64")) for at in rows])
            slots = torch.tensor([streams[at] for at in rows], device=self._device)
            with torch.inference_mode():
                made = self._decoder.step_rows(stacked.to(self._device), slots).cpu().numpy()
            results.update(zip(rows, made, strict=True))
        return [results[at] for at in range(len(codes))]

    def length(self, frames: int) -> int:
        """All frames make as many samples."""
        return frames * self._frame_samples

    def end(self, stream: int) -> None:
        """Free the slot."""
        self._free.append(stream)
