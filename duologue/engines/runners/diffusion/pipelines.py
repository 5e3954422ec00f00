"""One diffusers pipeline and its relatives over the same weights, loaded once and set up.

``StableDiffusion3Pipeline`` has relatives such as ``StableDiffusion3Img2ImgPipeline``: they are
found by their names and share every weight. This module must not know requests.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal, TypeAlias

import diffusers
import torch
from diffusers.models.attention_dispatch import AttentionBackendName

from duologue.core.errors import ConfigError, EngineError, OutOfMemory
from duologue.engines.runners.diffusion.batching import UNSUPPORTED
from duologue.engines.runners.diffusion.moving import Turn, move_in_parts
from duologue.engines.runners.diffusion.projection_cache import (
    ProjectionCache,
    found_projections,
)
from duologue.engines.runners.diffusion.prompt_cache import PromptCache
from duologue.engines.runners.diffusion.settings import DiffusionSettings
from duologue.engines.runners.diffusion.vae_tiles import add_blend_points, set_tile

Use: TypeAlias = Literal["text", "image", "mask", "first_picture", "video"]
"""What a call begins with, besides the prompt."""

Load: TypeAlias = Callable[[DiffusionSettings], Any]
"""Makes a pipeline of diffusers."""

_RELATIVES: dict[Use, str] = {
    "image": "Img2Img",
    "mask": "Inpaint",
    "first_picture": "ImageToVideo",
    "video": "VideoToVideo",
}
_DENOISERS = ("transformer", "transformer_2", "unet")
_DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


class Pipelines:
    """A pipeline that is loaded, and not on its device before it is moved there.

    Args:
        load: Makes the pipeline.

    Raises:
        ConfigError: It cannot be loaded, or something that the settings name is not there.
    """

    def __init__(self, settings: DiffusionSettings, load: Load | None = None) -> None:
        self.prompts = PromptCache(settings.prompt_cache_bytes)
        self._adapters: tuple[tuple[str, float], ...] = ()
        self._loras = tuple(settings.loras)
        self.base = (load or from_folder)(settings)
        _set_attention(self.base, settings.attention)
        _set_vae(self.base, settings)
        for name, path in settings.loras.items():
            _load_lora(self.base, name, path)
        if self._loras:
            self.base.disable_lora()
        self.projections = ProjectionCache(settings.projection_cache_bytes, lambda: self._adapters)
        if settings.projection_cache_bytes:
            for name, module in _projections(self.base, settings.projections):
                self.projections.attach(name, module)
        self._by_use: dict[Use, Any] = {"text": self._prepared(self.base)}

    def for_use(self, use: Use) -> Any:
        """Return the pipeline for a use.

        Raises:
            EngineError: The library has none of this family.
        """
        if use not in self._by_use:
            self._by_use[use] = self._prepared(self._relative(use))
        return self._by_use[use]

    def set_lora(self, name: str | None, scale: float) -> None:
        """Use an adapter, or none.

        Raises:
            EngineError: It is not among those that were loaded.
        """
        wanted = () if name is None else ((name, scale),)
        if wanted == self._adapters:
            return
        if name is None:
            self.base.disable_lora()
        elif name not in self._loras:
            known = ", ".join(self._loras) or "none"
            raise EngineError(
                f"no adapter is called {name!r}; there are: {known}", code=UNSUPPORTED
            )
        else:
            self.base.enable_lora()
            self.base.set_adapters([name], [scale])
        self._adapters = wanted

    def add_points(self, point: Callable[[], None]) -> None:
        """As the function, of the pipeline and all its relatives."""
        add_points(self.base, point)

    @property
    def model_bytes(self) -> int:
        """Memory of all weights."""
        models = [m for m in self.base.components.values() if isinstance(m, torch.nn.Module)]
        tensors = [t for model in models for t in (*model.parameters(), *model.buffers())]
        # Models may share tensors, as embeddings.
        return sum({t.data_ptr(): t.numel() * t.element_size() for t in tensors}.values())

    def move(self, device: str, turn: Turn = nullcontext) -> None:
        """Move all weights, and forget what was computed from them.

        Args:
            turn: Each part of it is done within one.

        Raises:
            OutOfMemory: There is no room for them; they are on the host then.
        """
        self.free()
        try:
            for model in self.base.components.values():
                if isinstance(model, torch.nn.Module):
                    move_in_parts(model, torch.device(device), turn)
            self.base.to(device)  # what is no weight; and it takes note of where it is
        except torch.OutOfMemoryError as exc:
            self.base.to("cpu")
            raise OutOfMemory(f"the pipeline has no room on {device}") from exc
        self.free()

    def free(self) -> None:
        """Give memory back that a call which broke off has left."""
        self.prompts.clear()
        self.projections.clear()
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()

    def _prepared(self, pipe: Any) -> Any:
        pipe.set_progress_bar_config(disable=True)
        if hasattr(pipe, "encode_prompt"):
            pipe.encode_prompt = self.prompts.through(pipe.encode_prompt, lambda: self._adapters)
        return pipe

    def _relative(self, use: Use) -> Any:
        own = type(self.base).__name__
        name = f"{own.removesuffix('Pipeline')}{_RELATIVES[use]}Pipeline"
        kind = getattr(diffusers, name, None)
        if kind is None:
            raise EngineError(
                f"diffusers has no {name}: {own} cannot begin with this", code=UNSUPPORTED
            )
        takes = inspect.signature(kind.__init__).parameters
        parts = {key: part for key, part in self.base.components.items() if key in takes}
        return kind(**parts)


def add_points(pipe: Any, point: Callable[[], None]) -> None:
    """Call ``point`` before every block of every model: between them work can pause.

    The blocks of a VAE are large, and there are few: there, also before each of their layers, and
    before each blend of two tiles.
    """
    for name, model in pipe.components.items():
        if isinstance(model, torch.nn.Module):
            is_vae = name.startswith("vae")
            for block in _blocks(model, with_layers=is_vae):
                block.register_forward_pre_hook(lambda _module, _args: point())
            if is_vae:
                add_blend_points(model, point)


def takes(pipe: Any) -> set[str]:
    """Return the names of the arguments of a pipeline's call."""
    return set(inspect.signature(type(pipe).__call__).parameters) - {"self"}


def from_folder(settings: DiffusionSettings) -> Any:
    """Load a pipeline as ``save_pretrained`` writes it, into the host's memory.

    Raises:
        ConfigError: There is none, or it cannot be loaded.
    """
    folder = Path(settings.folder)
    if not (folder / "model_index.json").is_file():
        raise ConfigError(f"{folder} is no diffusers pipeline: it has no model_index.json")
    try:
        pipe = diffusers.DiffusionPipeline.from_pretrained(
            folder, dtype=_DTYPES[settings.dtype], local_files_only=True
        )
    except (OSError, ValueError, AttributeError, ImportError) as exc:
        raise ConfigError(f"the pipeline {folder} cannot be loaded: {exc}") from exc
    return pipe


def _set_attention(pipe: Any, backend: str) -> None:
    if not backend:
        return
    known = sorted(each.value for each in AttentionBackendName)
    if backend not in known:
        raise ConfigError(
            f"no attention backend is called {backend!r}; there are {', '.join(known)}"
        )
    for name in _DENOISERS:
        model = getattr(pipe, name, None)
        if model is None:
            continue
        try:
            model.set_attention_backend(backend)
        except (RuntimeError, ValueError, ImportError, AttributeError) as exc:
            raise ConfigError(f"the attention backend {backend!r} cannot be used: {exc}") from exc


def _set_vae(pipe: Any, settings: DiffusionSettings) -> None:
    vae = getattr(pipe, "vae", None)
    for wanted, method in (
        (settings.vae_tiling, "enable_tiling"),
        (settings.vae_slicing, "enable_slicing"),
    ):
        if not wanted:
            continue
        try:
            getattr(vae, method)()
        except (AttributeError, NotImplementedError) as exc:
            raise ConfigError(f"the VAE of {type(pipe).__name__} has no {method}") from exc
    if settings.vae_tile:
        set_tile(vae, settings.vae_tile)


def _projections(pipe: Any, named: tuple[str, ...]) -> Iterator[tuple[str, torch.nn.Module]]:
    """Yield the projections that are named, or those that are found where none is."""
    found = {
        f"{part}.{path}": module
        for part in _DENOISERS
        if isinstance(model := getattr(pipe, part, None), torch.nn.Module)
        for path, module in found_projections(model)
    }
    if not named:
        yield from found.items()
    for name in named:
        part, _, path = name.partition(".")
        try:
            yield name, getattr(pipe, part).get_submodule(path)
        except AttributeError as exc:
            raise ConfigError(
                f"{type(pipe).__name__} has no module {name!r}; projections that it has are "
                f"{', '.join(found) or 'none that is known'}"
            ) from exc


def _load_lora(pipe: Any, name: str, path: str) -> None:
    place = Path(path)
    try:
        if place.is_file():
            pipe.load_lora_weights(place.parent, weight_name=place.name, adapter_name=name)
        else:
            pipe.load_lora_weights(place, adapter_name=name)
    except (OSError, ValueError, AttributeError, RuntimeError, ImportError) as exc:
        raise ConfigError(f"the adapter {name!r} ({path}) cannot be loaded: {exc}") from exc


def _blocks(model: torch.nn.Module, *, with_layers: bool) -> Iterator[torch.nn.Module]:
    """Yield the blocks that a model consists of.

    Args:
        with_layers: And what these consist of.
    """
    for child in model.children():
        if isinstance(child, torch.nn.ModuleList):
            yield from child
            if not with_layers:
                continue
        yield from _blocks(child, with_layers=with_layers)
