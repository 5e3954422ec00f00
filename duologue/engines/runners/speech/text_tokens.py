"""The tokenizer of a checkpoint folder. This module must not know models."""

from __future__ import annotations

from pathlib import Path

import msgspec
from tokenizers import Tokenizer

from duologue.core.errors import ConfigError

FILE = "tokenizer.json"


class _Outline(msgspec.Struct):
    model: dict[str, object]


def load_tokenizer(folder: Path) -> Tokenizer:
    """Read ``tokenizer.json``, which says all of it, what is put around a text included.

    Raises:
        ConfigError: It is missing or broken.
    """
    path = folder / FILE
    try:
        # The library says the same of all broken files, and in no type of its own.
        msgspec.json.decode(path.read_bytes(), type=_Outline)
    except FileNotFoundError as exc:
        raise ConfigError(f"{path} does not exist; save the tokenizer in that format too") from exc
    except (OSError, msgspec.MsgspecError) as exc:
        raise ConfigError(f"{path} cannot be read: {exc}") from exc
    return Tokenizer.from_file(str(path))
