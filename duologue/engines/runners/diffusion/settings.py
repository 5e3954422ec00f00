"""Settings of the runner ``diffusion``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

Positive = Annotated[int, msgspec.Meta(ge=1)]


class DiffusionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which pipeline, and how it is run.

    Args:
        folder: A pipeline as ``save_pretrained`` writes it, with ``model_index.json``.
        device: As torch names it.
        max_batch: Requests of the same shape that are denoised together.
        max_total_pixels: Of all pictures of a batch together; what would have more is split, and a
            request that has more alone is refused before anything of its size exists.
        slice_ms: Work between two looks at what else there is to do. Slices end between blocks of a
            model, and between layers of its VAE; a cancelled request ends there at once.
        job_bytes_per_pixel: What a request takes of its device beside the models, for the budget of
            the device; 0: as measured with the first call on a GPU, elsewhere that of its pixels.
        threads: Of torch on a CPU; 0: as torch likes.
        vae_tiling, vae_slicing: Decode large pictures in tiles, and batches one by one.
        vae_tile: Pixels of a tile's side, a multiple of 64; it needs ``vae_tiling``. 0: as the
            library has it, and on a device that calls use as large as is short enough there, found
            out with the call that warms up. Tiles overlap by a quarter, where they are blended.
        attention: A backend of diffusers, as ``native`` or ``flash``; empty: the library's choice.
        loras: Adapters by the name that requests use, each a file or folder of LoRA weights.
        prompt_cache_bytes: Embeddings of prompts that are kept; 0: none.
        projection_cache_bytes: Projections of embeddings that are kept, and used again where all
            that they depend on is the same to the last bit; 0: none. It is worth it where a hash of
            the embeddings is cheaper than their projection: on CPUs, and for large projections.
        projections: Names of the modules, as ``transformer.context_embedder``; empty: those of the
            denoisers whose name and class say that they are such.
        guidance_field: What the pipeline calls ``guidance``.
        call: Further arguments of every call, as ``max_sequence_length``.
        warm_width, warm_height, warm_pictures: A call of this size, of one step, warms up; 0: none.
    """

    folder: str
    device: str = "cpu"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    max_batch: Positive = 4
    max_total_pixels: Positive = 1 << 28
    slice_ms: Annotated[float, msgspec.Meta(gt=0, le=60_000)] = 50.0
    job_bytes_per_pixel: Annotated[int, msgspec.Meta(ge=0)] = 0
    threads: Annotated[int, msgspec.Meta(ge=0, le=1024)] = 0
    vae_tiling: bool = False
    vae_slicing: bool = False
    vae_tile: Annotated[int, msgspec.Meta(ge=0, le=1 << 14, multiple_of=64)] = 0
    attention: str = ""
    loras: dict[str, str] = {}
    prompt_cache_bytes: Annotated[int, msgspec.Meta(ge=0)] = 64 << 20
    projection_cache_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0
    projections: tuple[str, ...] = ()
    guidance_field: str = "guidance_scale"
    call: dict[str, Any] = {}
    warm_width: Annotated[int, msgspec.Meta(ge=0)] = 0
    warm_height: Annotated[int, msgspec.Meta(ge=0)] = 0
    warm_pictures: Annotated[int, msgspec.Meta(ge=0)] = 0

    def __post_init__(self) -> None:
        if self.vae_tile and not self.vae_tiling:
            raise ValueError("vae_tile is the size of tiles: it needs vae_tiling: true")
