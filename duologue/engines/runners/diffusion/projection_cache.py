"""Projections of what a picture is conditioned on, computed once for the same tensors and weights.

A denoiser projects the prompt's embeddings anew at every step. Here a module's result is used again
where all that it depends on is the same, to the last bit: so the result is the same, to the last
bit. Where that cannot be known, the module computes. This module must not know pipelines.

Source:
    The idea is that of ``ExactProjectionCache`` of vLLM-Omni.
"""

from __future__ import annotations

import functools
import hashlib
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, TypeAlias

import torch

from duologue.engines.runners.diffusion.tensor_store import TensorStore

_NAMES = frozenset(
    {"caption_projection", "context_embedder", "encoder_hid_proj", "text_embedder", "txt_in"}
)
_CLASSES = frozenset({"Linear", "PixArtAlphaTextProjection"})
"""What projections are called in diffusers, and what they are: functions of the prompt alone."""

_DIGEST_BYTES = 32

Versions: TypeAlias = tuple[Hashable, ...]


class _Unknowable(Exception):
    """Something has no version, or no value to compare."""


def found_projections(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """Yield the projections that a denoiser has, by their names in it."""
    for path, module in model.named_modules():
        name = path.rpartition(".")[2]
        if name in _NAMES and type(module).__name__ in _CLASSES:
            yield path, module


class ProjectionCache:
    """The newest results of projections, within a bound of bytes.

    The key is the content of all arguments (a hash of their bytes, with type, shape, strides and
    device), the module, the versions of its weights, and what else decides how torch computes.

    Args:
        max_bytes: Of all results that are kept.
        context: What else a result depends on, as the adapters in use.

    Concurrency:
        As the modules: one call at a time.
    """

    def __init__(self, max_bytes: int, context: Callable[[], Hashable] = lambda: None) -> None:
        self._kept = TensorStore(max_bytes)
        self._context = context
        self._digests: dict[int, tuple[weakref.ref[torch.Tensor], int, int, bytes]] = {}
        self.hits = 0
        self.misses = 0
        self.bypassed = 0
        """Calls of which it could not be known whether they were the same as others."""

    @property
    def kept_bytes(self) -> int:
        """What is kept."""
        return self._kept.bytes

    def attach(self, name: str, module: torch.nn.Module) -> None:
        """Let a module go through the cache.

        Args:
            name: Unique; hooks of the module itself run as before.
        """
        compute = module.forward

        @functools.wraps(compute)
        def forward(*args: Any, **kwargs: Any) -> Any:
            return self._project(name, module, compute, args, kwargs)

        module.forward = forward

    def clear(self) -> None:
        """Forget everything: weights were changed behind torch's back."""
        self._kept.clear()
        self._digests.clear()

    def _project(
        self,
        name: str,
        module: torch.nn.Module,
        compute: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        key = self._key(name, module, args, kwargs)
        if key is None:
            self.bypassed += 1
            return compute(*args, **kwargs)
        kept = self._kept.get(key)
        # Whoever got a result may have written into it since.
        if kept is not None and kept[1] == _written(kept[0]):
            self.hits += 1
            return kept[0]
        self.misses += 1
        result = compute(*args, **kwargs)
        written = _written(result)
        if written is not None:
            self._kept.put(key, (result, written))
        return result

    def _key(
        self,
        name: str,
        module: torch.nn.Module,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Hashable | None:
        if module.training or torch.compiler.is_compiling() or _is_hooked(module):
            return None
        try:
            given = (
                tuple(self._value(each) for each in args),
                tuple((at, self._value(each)) for at, each in sorted(kwargs.items())),
            )
            return name, self._context(), _weights(module), _way_of_computing(), given
        except _Unknowable:
            return None

    def _value(self, value: Any) -> Hashable:
        if isinstance(value, torch.Tensor):
            if value.requires_grad and torch.is_grad_enabled():
                raise _Unknowable
            place = (value.dtype, value.shape, value.stride(), value.device)
            return (*place, self._digest(value))
        if value is None or isinstance(value, bool | int | float | str):
            return type(value), value
        if isinstance(value, tuple | list):
            return type(value), tuple(self._value(each) for each in value)
        raise _Unknowable

    def _digest(self, tensor: torch.Tensor) -> bytes:
        """Return the hash of a tensor's content; one that nobody wrote into is hashed once."""
        version, pointer = _version(tensor), tensor.data_ptr()
        known = self._digests.get(id(tensor))
        if known is not None and known[0]() is tensor and known[1:3] == (version, pointer):
            return known[3]
        raw = tensor.detach().cpu().contiguous().flatten().view(torch.uint8)
        digest = hashlib.blake2b(raw.numpy().data, digest_size=_DIGEST_BYTES).digest()
        number = id(tensor)
        forget = weakref.ref(tensor, lambda _: self._digests.pop(number, None))
        self._digests[number] = (forget, version, pointer, digest)
        return digest


def _version(tensor: torch.Tensor) -> int:
    try:
        return int(tensor._version)
    except RuntimeError as exc:  # made in inference mode, where nothing is counted
        raise _Unknowable from exc


def _weights(module: torch.nn.Module) -> Versions:
    """Return what changes whenever a weight does."""
    versions: list[Hashable] = []
    for each in (*module.parameters(), *module.buffers()):
        if each.requires_grad and torch.is_grad_enabled():
            raise _Unknowable
        place = (each.data_ptr(), each.dtype, each.shape, each.stride(), each.device)
        versions.append((_version(each), *place))
    return tuple(versions)


def _way_of_computing() -> Hashable:
    """Return what torch is told that may change the last bits."""
    autocast = tuple(
        (kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind))
        for kind in ("cpu", "cuda")
    )
    return (
        autocast,
        torch.get_float32_matmul_precision(),
        torch.backends.cudnn.allow_tf32,
        torch.are_deterministic_algorithms_enabled(),
        torch.get_num_threads(),
    )


def _is_hooked(module: torch.nn.Module) -> bool:
    """Tell whether something inside would miss being called."""
    inside = (each for each in module.modules() if each is not module)
    return any(each._forward_hooks or each._forward_pre_hooks for each in inside)


def _written(result: Any) -> Versions | None:
    """Return what changes when somebody writes into a result; ``None``: it cannot be known."""
    parts = result if isinstance(result, tuple | list) else (result,)
    if not all(isinstance(each, torch.Tensor) for each in parts):
        return None
    try:
        return tuple((_version(each), each.data_ptr()) for each in parts)
    except _Unknowable:
        return None
