"""Settings of the runner, and the sizes that follow from them and from the device."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import msgspec

from duologue.core.errors import ConfigError
from duologue.engines.runners.streaming_lm.engine import EngineLimits
from duologue.engines.runners.streaming_lm.pages import PageLimits

BUCKETS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512)
"""Numbers of rows that steps are made for. A step costs what its bucket costs."""

Count = Annotated[int, msgspec.Meta(ge=1, le=4096)]


class StreamingLmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``streaming_lm``.

    Args:
        network: Which sizes the checkpoint has.
        weights: Path of the language model in safetensors format; ``codec``: that of the codec.
        tokenizer: Path of the SentencePiece vocabulary.
        voices: Folder of voices, ``<name>.pt``, where the model has several.
        voice: The one for who names none; empty: begin without a voice.
        device: Where it runs: ``cpu``, ``cuda`` or ``cuda:<n>``.
        max_sessions: More are never let in, whatever memory and time allow.
        mean_frames: How much of its window a call fills on average. Memory is shared out by this;
            when calls fill more, the longest windows become shorter. 0: the whole window.
        page_frames: Positions of one page of keys and values.
        growth_frames: What a call that is let in is promised beyond its beginning.
        reserve_mb: Memory of the device that is left for intermediate results and for others.
        message_ms: The longest messages of audio that clients send.
        eight_bit_kv, eight_bit_weights: Keep keys and values, or weights, in 8 bits. Twice the
            calls, or 6 GB less; there is no evidence of its quality.
        narrow_codec: Run the codec's convolutions and transformers in bfloat16; likewise.
        host_margin_ms: What a step takes on the host beside what was measured at the start.
    """

    network: Literal["moshi", "personaplex", "moshi-tiny"]
    weights: str
    codec: str
    tokenizer: str
    voices: str = ""
    voice: str = ""
    device: str = "cpu"
    max_sessions: Count = 168
    mean_frames: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    page_frames: Annotated[int, msgspec.Meta(ge=4, le=256)] = 32
    growth_frames: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 64
    reserve_mb: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 3000
    message_ms: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 40
    eight_bit_kv: bool = False
    eight_bit_weights: bool = False
    narrow_codec: bool = False
    host_margin_ms: Annotated[float, msgspec.Meta(ge=0, le=40)] = 3.0


def engine_limits(
    settings: StreamingLmSettings, window: int, free_pages: int | None
) -> EngineLimits:
    """Choose how many streams memory allows.

    Args:
        free_pages: As many as the device has room for; None: as many as are wanted.

    Raises:
        ConfigError: There is not room for a single stream.
    """
    sizes = PageLimits(
        pages=1,
        page_frames=settings.page_frames,
        window=window,
        growth_frames=min(settings.growth_frames, window),
    )
    whole = sizes.promised
    mean = min(whole, sizes.pages_for(settings.mean_frames or window))
    wanted = settings.max_sessions * mean
    pages = wanted if free_pages is None else min(wanted, free_pages)
    slots = min(settings.max_sessions, pages // mean)
    # Everybody keeps the page that it writes, and one more call may be let in at once.
    pages = max(pages, whole + sizes.pages_for(sizes.chunk))
    if slots < 1 or (free_pages is not None and pages > free_pages):
        raise ConfigError(
            f"the device has room for {free_pages} pages of {settings.page_frames} frames, and one"
            f" call of {window} frames needs {whole}. Use a device with more memory, keep keys and"
            " values in 8 bits (eight_bit_kv), or lower reserve_mb."
        )
    buckets = (*(n for n in BUCKETS if n < slots), slots)
    return EngineLimits(
        slots=slots,
        pages=replace(sizes, pages=pages),
        buckets=buckets,
        eight_bit_kv=settings.eight_bit_kv,
    )
