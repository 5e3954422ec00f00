"""What the talkers of Qwen share: words through a projection, codes with their tables, and the end.

This module must not know how a prompt is put together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.core.errors import ConfigError
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.code_talker.predictor import CodePredictor
from duologue.engines.models.code_talker.sampling import Taste, less_often
from duologue.engines.models.code_talker.talker import (
    AnswerLanguage,
    CodeTalker,
    Language,
    Manner,
)
from duologue.engines.models.decoder.config import DecoderConfig
from duologue.engines.models.decoder.stack import DecoderStack
from duologue.engines.runners.speech.loading import SpeechSettings
from duologue.engines.runners.speech.text_tokens import load_tokenizer
from duologue.engines.runners.speech.torch_settings import device_of

_NO_SOUND = 1024
"""So many of the last first codes mean no sound; only the end may be drawn of them."""


class QwenSettings(SpeechSettings, frozen=True, kw_only=True):
    """Settings that both talkers have; the defaults of draws are those of their libraries.

    Args:
        voice: For clauses that ask for none.
        positions: Longest clause with its speech, in tokens of text and frames.
        repetition_penalty: Makes first codes that were drawn before less likely; 1: not at all.
        other_temperature, other_top_k, other_top_p: How the codes after the first are drawn.
    """

    voice: str = ""
    positions: Annotated[int, msgspec.Meta(ge=16, le=65_536)] = 2048
    repetition_penalty: Annotated[float, msgspec.Meta(gt=0, le=4)] = 1.05
    other_temperature: Annotated[float, msgspec.Meta(ge=0, le=4)] = 1.0
    other_top_k: Annotated[int, msgspec.Meta(ge=1, le=65_536)] = 50
    other_top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0


class Projection:
    """Turns what another model reads, or has made of it, into what the talker reads."""

    def __init__(self, folder: CheckpointFolder, name: str) -> None:
        self._layers = [
            (
                folder.tensor(f"{name}.linear_fc{number}.weight"),
                folder.tensor(f"{name}.linear_fc{number}.bias"),
            )
            for number in (1, 2)
        ]

    def __call__(self, x: Tensor) -> Tensor:
        """[N, D] -> [N, D of the talker]."""
        (weight1, bias1), (weight2, bias2) = self._layers
        return F.linear(F.silu(F.linear(x.to(weight1), weight1, bias1)), weight2, bias2)


class QwenWords:
    """Words and codes as a talker reads them.

    Args:
        talker: The section of ``config.json`` with ids of codes.
        network: The section with the sizes of the large transformer.
        words: Name of the table of words, of any width.
        least_frames: The end is not drawn before.
    """

    def __init__(
        self,
        folder: CheckpointFolder,
        settings: QwenSettings,
        talker: Mapping[str, Any],
        network: Mapping[str, Any],
        words: str,
        least_frames: int = 0,
    ) -> None:
        self._penalty = settings.repetition_penalty
        self._least_frames = least_frames
        self.tokenizer = load_tokenizer(folder.path)
        self.own = {
            key.removesuffix("_token_id"): int(value)
            for key, value in folder.config.items()
            if key.endswith("_token_id") and isinstance(value, int)
        }
        self.codec = {
            key.removeprefix("codec_").removesuffix("_id"): int(value)
            for key, value in talker.items()
            if key.startswith("codec_") and isinstance(value, int)
        }
        self.end = self.codec["eos_token"]
        self.vocabulary, self.books = int(network["vocab_size"]), int(talker["num_code_groups"])
        size = int(network["hidden_size"])
        short = talker["code_predictor_config"]
        self._words = folder.tensor(words)
        self._into = Projection(folder, "talker.text_projection")
        self.first = folder.tensor("talker.model.codec_embedding.weight", self.vocabulary, size)
        self.others = [
            folder.tensor(
                f"talker.code_predictor.model.codec_embedding.{index}.weight",
                *(int(short["vocab_size"]), size),
            )
            for index in range(self.books - 1)
        ]
        self._head = folder.tensor("talker.codec_head.weight", self.vocabulary, size)
        codes = torch.arange(self.vocabulary, device=self.first.device)
        self._is_end = codes == self.end
        self._never = (codes >= self.vocabulary - _NO_SOUND) & ~self._is_end

    def tokens(self, text: str) -> list[int]:
        """Return a text's tokens."""
        ids: list[int] = self.tokenizer.encode(text).ids
        return ids

    def text(self, ids: Sequence[int]) -> Tensor:
        """Return words as inputs, [N, D]."""
        x = F.embedding(
            torch.tensor(ids, dtype=torch.int64, device=self._words.device), self._words
        )
        return self._into(x)

    def codes(self, ids: Sequence[int]) -> Tensor:
        """Return first codes as inputs, [N, D]."""
        return F.embedding(torch.tensor(ids, device=self.first.device), self.first)

    def scores(self, hidden: Tensor, said: Tensor, frames: Tensor) -> Tensor:
        """Return how likely each first code is."""
        scores = less_often(F.linear(hidden, self._head), said, self._penalty)
        too_early = (frames < self._least_frames)[:, None] & self._is_end
        return scores.masked_fill(self._never | too_early, float("-inf"))

    def embed(self, codes: Tensor) -> Tensor:
        """Return a frame as the talker reads it."""
        tables = (self.first, *self.others)
        parts = [F.embedding(codes[:, place], table) for place, table in enumerate(tables)]
        return torch.stack(parts).sum(dim=0)

    def is_end(self, codes: Sequence[int]) -> bool:
        """The end is a first code of its own."""
        return codes[0] == self.end


def make_talker(
    folder: CheckpointFolder,
    settings: QwenSettings,
    language: Language,
    words: QwenWords,
    network: Mapping[str, Any],
    short: Mapping[str, Any],
    answers: AnswerLanguage | None = None,
) -> CodeTalker:
    """Load the two transformers.

    Args:
        network, short: Their sections of ``config.json``.
        answers: How answers are read, where they can be said.
    """
    large, small = DecoderConfig.read(network), DecoderConfig.read(short)
    predictor = "talker.code_predictor"
    heads = [
        folder.tensor(
            f"{predictor}.lm_head.{index}.weight", int(short["vocab_size"]), small.dimension
        )
        for index in range(words.books - 1)
    ]
    projection = f"{predictor}.small_to_mtp_projection"
    into = None
    if f"{projection}.weight" in folder:
        into = folder.tensor(f"{projection}.weight"), folder.tensor(f"{projection}.bias")
    others = CodePredictor(
        DecoderStack(folder, f"{predictor}.model", small, slots=settings.slots, length=words.books),
        [words.first, *words.others[:-1]],
        heads,
        into,
    )
    stack = DecoderStack(
        folder,
        "talker.model",
        large,
        slots=settings.slots,
        length=min(settings.positions, large.positions),
    )
    taste = Taste(temperature=settings.temperature, top_k=settings.top_k)
    other_taste = Taste(
        temperature=settings.other_temperature,
        top_k=settings.other_top_k,
        top_p=settings.other_top_p,
    )
    return CodeTalker(
        stack,
        others,
        language,
        Manner(first=taste, others=other_taste, seed=settings.seed),
        slots=settings.slots,
        vocabulary=words.vocabulary,
        books=words.books,
        device=device_of(settings),
        answers=answers,
    )


def missing(exc: KeyError) -> ConfigError:
    """Return what to say of a configuration that lacks something."""
    return ConfigError(f"config.json does not say {exc.args[0]} of the talker")
