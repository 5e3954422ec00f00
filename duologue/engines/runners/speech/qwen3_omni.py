"""Qwen3-Omni's talker and code2wav: text in, speech out, without the thinker.

Of the thinker only the embeddings of text are read, since that is all that reaches the talker of a
conversation in text. The rest of that checkpoint stays on the disk.

Source:
    ``Qwen3OmniMoeForConditionalGeneration.generate`` of transformers; Xu et al., "Qwen3-Omni
    technical report" (2025), section 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.code2wav.decoder import Code2Wav
from duologue.engines.models.code_talker.predictor import CodePredictor
from duologue.engines.models.code_talker.sampling import Taste, less_often
from duologue.engines.models.code_talker.talker import CodeTalker, Manner, Prompt
from duologue.engines.models.decoder.config import DecoderConfig
from duologue.engines.models.decoder.stack import DecoderStack
from duologue.engines.payloads import SpeakText
from duologue.engines.runners.speech.code2wav_codec import Code2WavCodec
from duologue.engines.runners.speech.loading import SpeechSettings, speech_runner
from duologue.engines.runners.speech.text_tokens import load_tokenizer
from duologue.engines.runners.speech.torch_settings import device_of, dtype_of, use_threads

_NO_SOUND = 1024
"""So many of the last first codes mean no sound; only the end may be drawn of them."""

_PADS = 4


class Qwen3OmniSettings(SpeechSettings, frozen=True, kw_only=True):
    """Settings of ``qwen3_omni``; the defaults of draws are those of the library.

    Args:
        voice: For clauses that ask for none.
        asked: What the person is taken to have said, to which the text is the answer.
        positions: Longest clause with its speech, in tokens of text and frames.
        repetition_penalty: Makes first codes that were drawn before less likely; 1: not at all.
        other_temperature, other_top_k, other_top_p: How the codes after the first are drawn.
    """

    voice: str = "ethan"
    asked: str = "Read this aloud."
    positions: Annotated[int, msgspec.Meta(ge=16, le=65_536)] = 2048
    repetition_penalty: Annotated[float, msgspec.Meta(gt=0, le=4)] = 1.05
    other_temperature: Annotated[float, msgspec.Meta(ge=0, le=4)] = 1.0
    other_top_k: Annotated[int, msgspec.Meta(ge=1, le=65_536)] = 50
    other_top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.8


class _Language:
    """How the talker reads text and codes."""

    def __init__(self, folder: CheckpointFolder, settings: Qwen3OmniSettings) -> None:
        config, talker = folder.config, folder.section("talker_config")
        text, predictor = talker["text_config"], talker["code_predictor_config"]
        self._settings = settings
        self._tokenizer = load_tokenizer(folder.path)
        self._voices: Mapping[str, int] = talker["speaker_id"]
        self._own = {key: int(value) for key, value in config.items() if key.endswith("_token_id")}
        self._codec = {key: int(value) for key, value in talker.items() if key.startswith("codec_")}
        self.vocabulary, self.books = int(text["vocab_size"]), int(talker["num_code_groups"])
        wide, middle, size = (
            int(talker["thinker_hidden_size"]),
            int(text["intermediate_size"]),
            int(text["hidden_size"]),
        )
        self._words = folder.tensor("thinker.model.embed_tokens.weight")
        self._into = [
            (
                folder.tensor(f"talker.text_projection.linear_fc{number}.weight", *shape),
                folder.tensor(f"talker.text_projection.linear_fc{number}.bias", shape[0]),
            )
            for number, shape in ((1, (middle, wide)), (2, (size, middle)))
        ]
        self.first = folder.tensor("talker.model.codec_embedding.weight", self.vocabulary, size)
        self.others = [
            folder.tensor(
                f"talker.code_predictor.model.codec_embedding.{index}.weight",
                *(int(predictor["vocab_size"]), size),
            )
            for index in range(self.books - 1)
        ]
        self.head = folder.tensor("talker.codec_head.weight", self.vocabulary, size)
        self._never = torch.arange(self.vocabulary, device=self.first.device)
        self._never = (self._never >= self.vocabulary - _NO_SOUND) & (self._never != self._end)

    @property
    def _end(self) -> int:
        return self._codec["codec_eos_token_id"]

    def prompt(self, clause: SpeakText) -> Prompt:
        """Read a clause as the answer to what was asked; its words come in with the frames."""
        own = self._own
        line = self._tokenizer.encode("\n").ids
        asked = clause.instructions or self._settings.asked
        user = [own["im_start_token_id"], own["user_token_id"], *line]
        user += [*self._tokenizer.encode(asked).ids, own["im_end_token_id"], *line]
        answer = [own["im_start_token_id"], own["assistant_token_id"], *line]
        words = self._tokenizer.encode(clause.text).ids
        pad, begin, end = (own[f"tts_{name}_token_id"] for name in ("pad", "bos", "eos"))
        text = self._text([*user, *answer, *[pad] * _PADS, begin, words[0]])
        codes = F.embedding(torch.tensor(self._beginning(clause), device=text.device), self.first)
        text[-len(codes) :] += codes
        later = self._text([*words[1:], end, pad])
        return Prompt(text, later[:-1], later[-1])

    def scores(self, hidden: Tensor, said: Tensor) -> Tensor:
        """Return how likely each first code is."""
        scores = less_often(F.linear(hidden, self.head), said, self._settings.repetition_penalty)
        return scores.masked_fill(self._never, float("-inf"))

    def embed(self, codes: Tensor) -> Tensor:
        """Return a frame as the talker reads it."""
        tables = (self.first, *self.others)
        parts = [F.embedding(codes[:, place], table) for place, table in enumerate(tables)]
        return torch.stack(parts).sum(dim=0)

    def is_end(self, codes: Sequence[int]) -> bool:
        """The end is a first code of its own."""
        return codes[0] == self._end

    def _beginning(self, clause: SpeakText) -> list[int]:
        """Return the codes under the last inputs of the prompt, which name the voice."""
        voice = clause.voice if clause.voice not in (None, "", "default") else self._settings.voice
        number = self._voices.get((voice or "").lower())
        if number is None:
            known = ", ".join(sorted(self._voices))
            raise EngineError(f"there is no voice {voice!r} in this checkpoint; there are {known}")
        codec = self._codec
        return [
            codec["codec_nothink_id"],
            codec["codec_think_bos_id"],
            codec["codec_think_eos_id"],
            number,
            codec["codec_pad_id"],
            codec["codec_bos_id"],
        ]

    def _text(self, ids: Sequence[int]) -> Tensor:
        x = F.embedding(torch.tensor(ids, device=self._words.device), self._words)
        (weight1, bias1), (weight2, bias2) = self._into
        return F.linear(F.silu(F.linear(x, weight1, bias1)), weight2, bias2)


def load_talker(settings: Qwen3OmniSettings) -> CodeTalker:
    """Load talker and code predictor."""
    use_threads(settings)
    device = device_of(settings)
    with CheckpointFolder(Path(settings.folder), settings.device, dtype_of(settings)) as folder:
        talker = DecoderConfig.read(folder.section("talker_config", "text_config"))
        short: Mapping[str, Any] = folder.section("talker_config", "code_predictor_config")
        try:
            language = _Language(folder, settings)
        except KeyError as exc:
            raise ConfigError(f"config.json does not say {exc.args[0]} of the talker") from exc
        predictor = DecoderConfig.read(short)
        heads = [
            folder.tensor(
                f"talker.code_predictor.lm_head.{index}.weight",
                *(int(short["vocab_size"]), predictor.dimension),
            )
            for index in range(language.books - 1)
        ]
        others = CodePredictor(
            DecoderStack(
                folder,
                "talker.code_predictor.model",
                predictor,
                slots=settings.slots,
                length=language.books,
            ),
            [language.first, *language.others[:-1]],
            heads,
        )
        stack = DecoderStack(
            folder,
            "talker.model",
            talker,
            slots=settings.slots,
            length=min(settings.positions, talker.positions),
        )
    return CodeTalker(
        stack,
        others,
        language,
        Manner(
            first=Taste(temperature=settings.temperature, top_k=settings.top_k),
            others=Taste(
                temperature=settings.other_temperature,
                top_k=settings.other_top_k,
                top_p=settings.other_top_p,
            ),
            seed=settings.seed,
        ),
        slots=settings.slots,
        vocabulary=language.vocabulary,
        books=language.books,
        device=device,
    )


def load_codec(settings: Qwen3OmniSettings) -> Code2WavCodec:
    """Load code2wav."""
    use_threads(settings)
    longest = max(settings.first_frames, settings.chunk_frames) + 1
    with CheckpointFolder(Path(settings.folder), settings.device) as folder:
        section = folder.section("code2wav_config")
        decoder = Code2Wav(folder, "code2wav", section, slots=settings.slots, longest=longest)
    return Code2WavCodec(decoder, settings.slots)


QWEN3_OMNI = speech_runner(Qwen3OmniSettings, load_talker, load_codec)
