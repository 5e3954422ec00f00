from __future__ import annotations

from typing import Any

import pytest
import torch

from duologue.engines.runners.diffusion.prompt_cache import PromptCache

pytestmark = pytest.mark.diffusion


class Encoder:
    def __init__(self) -> None:
        self.calls = 0

    def encode(self, prompt: Any, *, embeds: Any = None, device: Any = None) -> Any:
        self.calls += 1
        return (torch.zeros(4, 8), None)


def test_the_same_words_are_encoded_once() -> None:
    cache, encoder = PromptCache(10_000), Encoder()
    encode = cache.through(encoder.encode, lambda: ())
    first = encode("a cat", device=torch.device("cpu"))
    assert encode("a cat", device=torch.device("cpu")) is first
    encode(["a cat", "a dog"])
    encode(["a cat", "a dog"])
    assert encoder.calls == 2
    assert (cache.hits, cache.misses, cache.bytes) == (2, 2, 2 * 4 * 8 * 4)


def test_another_adapter_is_another_embedding() -> None:
    cache, encoder = PromptCache(10_000), Encoder()
    adapters = [()]
    encode = cache.through(encoder.encode, lambda: tuple(adapters))
    encode("a cat")
    adapters.append(("ink", 1.0))
    encode("a cat")
    assert encoder.calls == 2


def test_what_comes_with_tensors_is_not_remembered() -> None:
    cache, encoder = PromptCache(10_000), Encoder()
    encode = cache.through(encoder.encode, lambda: ())
    encode(None, embeds=torch.zeros(2))
    encode(None, embeds=torch.zeros(2))
    assert encoder.calls == 2
    assert cache.bytes == 0


def test_the_oldest_goes_where_there_is_no_room() -> None:
    cache, encoder = PromptCache(2 * 128), Encoder()
    encode = cache.through(encoder.encode, lambda: ())
    for prompt in ("one", "two", "one", "three"):
        encode(prompt)
    assert cache.bytes == 2 * 128
    encode("one")
    assert encoder.calls == 3
    encode("two")
    assert encoder.calls == 4
    cache.clear()
    assert cache.bytes == 0


def test_nothing_is_kept_where_nothing_may_be() -> None:
    cache, encoder = PromptCache(0), Encoder()
    encode = cache.through(encoder.encode, lambda: ())
    encode("a cat")
    encode("a cat")
    assert (encoder.calls, cache.bytes) == (2, 0)
