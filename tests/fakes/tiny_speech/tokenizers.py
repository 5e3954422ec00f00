"""Tokenizers without training: every byte is a token, so all machines make the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors


def byte_tokenizer(special: Sequence[str], around: tuple[str, str] | None = None) -> Tokenizer:
    """One token for each byte, behind the special ones.

    Args:
        around: What is put before and behind every text.
    """
    tokens = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(each, special=True) for each in special])
    if around is not None:
        first, last = around
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{first} $A {last}",
            special_tokens=[(each, vocabulary[each]) for each in around],
        )
    return tokenizer


def save(tokenizer: Tokenizer, folder: Path) -> None:
    tokenizer.save(str(folder / "tokenizer.json"))
