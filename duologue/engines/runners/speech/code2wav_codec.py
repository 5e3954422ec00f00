"""Code2wav as the codec of a speech model. This module must not know which model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from duologue.engines.models.code2wav.decoder import Code2Wav
from duologue.engines.runners.speech.contract import Codes, Samples

RATE_HZ = 24_000


@dataclass(eq=False, slots=True)
class _Stream:
    slot: int
    frames: int = 0


class Code2WavCodec:
    """Implements ``Codec``."""

    rate_hz = RATE_HZ

    def __init__(self, decoder: Code2Wav, slots: int) -> None:
        self.books = decoder.books
        self.slots = slots
        self._decoder = decoder
        self._free = list(range(slots))

    def begin(self) -> _Stream:
        """Take a slot."""
        slot = self._free.pop()
        self._decoder.reset(slot)
        return _Stream(slot)

    def decode(self, streams: Sequence[_Stream], codes: Sequence[Codes]) -> Sequence[Samples]:
        """Sound the next frames.

        Those of as many frames share a step, but those that begin have one of their own: their
        first samples are left out.
        """
        results: dict[int, Samples] = {}
        kinds = [(len(given), not each.frames) for each, given in zip(streams, codes, strict=True)]
        for kind in set(kinds):
            rows = [at for at, each in enumerate(kinds) if each == kind]
            stacked = torch.stack([torch.from_numpy(codes[at].astype("int64")) for at in rows])
            slots = [streams[at].slot for at in rows]
            starts = [streams[at].frames for at in rows]
            with torch.inference_mode():
                made = self._decoder.step(stacked.to(self._decoder.device), slots, starts)
            results.update(zip(rows, made.cpu().numpy(), strict=True))
            for at in rows:
                streams[at].frames += len(codes[at])
        return [results[at] for at in range(len(codes))]

    def length(self, frames: int) -> int:
        """Return how many samples the first ``frames`` frames make."""
        return self._decoder.length(frames)

    def end(self, stream: _Stream) -> None:
        """Free the slot."""
        self._free.append(stream.slot)
