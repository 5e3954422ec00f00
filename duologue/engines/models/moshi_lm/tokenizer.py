"""Text to tokens and back, with the vocabulary that belongs to the model."""

from __future__ import annotations

from pathlib import Path

from sentencepiece import SentencePieceProcessor

from duologue.core.errors import ConfigError
from duologue.engines.models.moshi_lm.config import MoshiConfig

WORD_START = "▁"


class TextTokenizer:
    """A SentencePiece vocabulary.

    Raises:
        ConfigError: The file cannot be read, or has another number of tokens than the model.
    """

    def __init__(self, path: Path, config: MoshiConfig) -> None:
        try:
            self._processor = SentencePieceProcessor(model_file=str(path))
        except (OSError, RuntimeError) as error:
            raise ConfigError(
                f"cannot read the tokenizer {path}."
                " It must be a SentencePiece model; fetch it again."
            ) from error
        size = self._processor.get_piece_size()
        if size != config.text_card:
            raise ConfigError(
                f"the tokenizer {path} has {size} tokens, the model {config.text_card}."
                " Use the one that belongs to the model."
            )
        self._silent = frozenset(config.silent_text)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        tokens: list[int] = self._processor.encode(text)
        return tokens

    def stream(self) -> TextStream:
        """Begin to read what a model writes, one token a frame."""
        return TextStream(self._processor, self._silent)


class TextStream:
    """Makes text of tokens as they come; letters that are spelt in bytes wait until whole."""

    __slots__ = ("_bytes", "_processor", "_silent")

    def __init__(self, processor: SentencePieceProcessor, silent: frozenset[int]) -> None:
        self._processor = processor
        self._silent = silent
        self._bytes = b""

    def read(self, token: int) -> str:
        """Return the text of a token: mostly none."""
        if token in self._silent:
            return ""
        piece: str = self._processor.id_to_piece(token)
        if self._processor.is_byte(token):
            self._bytes += bytes((int(piece[3:5], 16),))
            return self._take(whole=False)
        if self._processor.is_control(token):
            return ""
        return self._take(whole=True) + piece.replace(WORD_START, " ")

    def _take(self, *, whole: bool) -> str:
        try:
            text = self._bytes.decode()
        except UnicodeDecodeError:
            if not whole and len(self._bytes) < 4:
                return ""
            text = self._bytes.decode(errors="replace")
        self._bytes = b""
        return text
