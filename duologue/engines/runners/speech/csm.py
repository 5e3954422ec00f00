"""CSM (``CsmForConditionalGeneration``): text in, frames of Mimi codes out; and Mimi itself.

Source:
    The checkpoint ``sesame/csm-1b`` and its class in transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from duologue.codecs.mimi.hub_layout import load_decoder
from duologue.core.errors import ConfigError, EngineError
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.code_talker.predictor import CodePredictor
from duologue.engines.models.code_talker.sampling import Taste
from duologue.engines.models.code_talker.talker import CodeTalker, Manner, Prompt
from duologue.engines.models.decoder.config import DecoderConfig
from duologue.engines.models.decoder.stack import DecoderStack
from duologue.engines.payloads import SpeakText
from duologue.engines.runners.speech.loading import SpeechSettings, speech_runner
from duologue.engines.runners.speech.mimi_codec import MimiCodec
from duologue.engines.runners.speech.text_tokens import load_tokenizer
from duologue.engines.runners.speech.torch_settings import device_of, dtype_of, use_threads


class CsmSettings(SpeechSettings, frozen=True, kw_only=True):
    """Settings of ``csm``. Its voices are the numbers of speakers.

    Args:
        voice: For clauses that ask for none.
        positions: Longest clause with its speech, in text tokens and frames.
    """

    voice: str = "0"
    positions: Annotated[int, msgspec.Meta(ge=16, le=65_536)] = 2048


class _Language:
    """How CSM reads text and codes."""

    def __init__(self, folder: CheckpointFolder, settings: CsmSettings) -> None:
        config = folder.config
        self._voice = settings.voice
        self._tokenizer: Tokenizer = load_tokenizer(folder.path)
        self.books, self.vocabulary = int(config["num_codebooks"]), int(config["vocab_size"])
        self._end = int(config["codebook_eos_token_id"])
        size = int(config["hidden_size"])
        self._text = folder.tensor("embed_text_tokens.weight", int(config["text_vocab_size"]), size)
        self.head = folder.tensor("lm_head.weight", self.vocabulary, size)
        # The two transformers share these where the checkpoint says so, and then they are stored
        # once, by the name of the small one.
        shared = "depth_decoder.model.embed_tokens.weight"
        own = "backbone_model.embed_tokens.embed_audio_tokens.weight"
        rows = self.books * self.vocabulary
        self.shared_tables = folder.tensor(shared, rows, size)
        self._tables = folder.tensor(own, rows, size) if own in folder else self.shared_tables
        self._begins = torch.arange(0, rows, self.vocabulary, device=self._text.device)

    def prompt(self, clause: SpeakText) -> Prompt:
        """Read a clause, said by nobody before."""
        voice = self._voice if clause.voice in (None, "", "default") else str(clause.voice)
        if not voice.isdecimal():
            raise EngineError(f"CSM has no voice {voice!r}: its voices are numbers of speakers")
        ids = self._tokenizer.encode(f"[{voice}]{clause.text}").ids
        return Prompt(F.embedding(torch.tensor(ids, device=self._text.device), self._text))

    def scores(self, hidden: Tensor, said: Tensor, frames: Tensor) -> Tensor:
        """Return how likely each first code is, whatever was said."""
        return F.linear(hidden, self.head)

    def embed(self, codes: Tensor) -> Tensor:
        """Return a frame as the backbone reads it."""
        return F.embedding(codes + self._begins, self._tables).sum(dim=1)

    def is_end(self, codes: Sequence[int]) -> bool:
        """The end is a frame of end codes; as in transformers, its last code does not count."""
        return all(code == self._end for code in codes[:-1])


def load_talker(settings: CsmSettings) -> CodeTalker:
    """Load backbone and depth decoder."""
    use_threads(settings)
    device = device_of(settings)
    with CheckpointFolder(Path(settings.folder), settings.device, dtype_of(settings)) as folder:
        try:
            language = _Language(folder, settings)
        except KeyError as exc:
            raise ConfigError(f"config.json does not say {exc.args[0]} of CSM") from exc
        backbone = DecoderConfig.read(folder.config)
        depth = DecoderConfig.read(folder.section("depth_decoder_config"))
        heads = folder.tensor(
            "depth_decoder.codebooks_head.weight",
            *(language.books - 1, depth.dimension, language.vocabulary),
        )
        predictor = CodePredictor(
            DecoderStack(
                folder, "depth_decoder.model", depth, slots=settings.slots, length=language.books
            ),
            language.shared_tables.chunk(language.books)[:-1],
            heads.transpose(1, 2).contiguous().unbind(),
            (
                folder.tensor(
                    "depth_decoder.model.inputs_embeds_projector.weight",
                    *(depth.dimension, backbone.dimension),
                ),
                None,
            ),
        )
        stack = DecoderStack(
            folder,
            "backbone_model",
            backbone,
            slots=settings.slots,
            length=min(settings.positions, backbone.positions),
        )
    taste = Taste(temperature=settings.temperature, top_k=settings.top_k)
    return CodeTalker(
        stack,
        predictor,
        language,
        Manner(first=taste, others=taste, seed=settings.seed),
        slots=settings.slots,
        vocabulary=language.vocabulary,
        books=language.books,
        device=device,
    )


def load_codec(settings: CsmSettings) -> MimiCodec:
    """Load the decoder of Mimi."""
    use_threads(settings)
    with CheckpointFolder(Path(settings.folder), settings.device) as folder:
        weights = load_decoder(folder.section("codec_config"), folder.tensor, "codec_model.")
    longest = max(settings.first_frames, settings.chunk_frames) + 1
    return MimiCodec(weights, settings.slots, longest)


CSM = speech_runner(CsmSettings, load_talker, load_codec)
