"""Language models run by vLLM, beside this process (package ``vllm``).

vLLM brings its own scheduler: batches, paged memory, prefix cache, and tensor parallelism over its
own workers or over Ray. So this runner only says what is wanted and passes on what is written. This
module must not know what the text is for.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.lifecycle_port import DROPPED, SLEEP_UNSUPPORTED
from duologue.engines.payloads import ChatRequest
from duologue.engines.runners.llm.async_answers import (
    AsyncAnswers,
    WriterBroken,
    loop_in_a_thread,
)
from duologue.engines.runners.llm.chat_chunk import (
    CONTEXT_EXCEEDED,
    REQUEST_REFUSED,
    ChatChunk,
    chat_body,
    chunk_from,
)
from duologue.engines.runners.llm.requests import held_to_calls, no_adapter
from duologue.engines.runners.llm.template_messages import pictures_of, template_messages
from duologue.engines.runners.registry import RunnerType, Wake

_ANY_OBJECT = "{}"


class VllmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``vllm``.

    Args:
        model_path: A folder with ``config.json``, tokenizer and weights. Its own chat template is
            used.
        context_tokens: Prompt and answer together; 0: as much as the model can.
        max_batch: How many answers are written at once. At least the stage's ``max_jobs``.
        dtype: Of weights and activations.
        tensor_parallel: Devices that share the model.
        workers: Where vLLM runs its own workers when there are several devices: ``mp`` on this
            machine, ``ray`` on a cluster.
        memory_share: Of the device's memory, weights included.
        cpu_cache_gb: Memory of the cache where the device is a CPU.
        prefix_cache: Remember what was read, so that a conversation is not read again every turn.
        eager: Start sooner and run slower, without compiled graphs.
        adapters: Names and folders of LoRA weights.
        adapter_rank: The largest rank among them.
        pictures: How many a prompt may have, where the model sees; 0: none.
        picture_pixels: Largest of them.
        sleep_mode: Let it sleep at level 1, with its weights in the host's memory; on GPUs alone.
            Level 2 needs nothing: vLLM ends, and is started again at wake.
    """

    model_path: str
    context_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    max_batch: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 64
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    tensor_parallel: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    workers: Literal["mp", "ray"] = "mp"
    memory_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.9
    cpu_cache_gb: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 4
    prefix_cache: bool = True
    eager: bool = False
    adapters: dict[str, str] = {}
    adapter_rank: Annotated[int, msgspec.Meta(ge=1, le=512)] = 16
    pictures: Annotated[int, msgspec.Meta(ge=0, le=1024)] = 0
    picture_pixels: Annotated[int, msgspec.Meta(ge=1, le=1 << 30)] = 1 << 25
    sleep_mode: bool = False


class VllmWriter:
    """Asks one engine of vLLM.

    Args:
        engine: Its ``AsyncLLM``.
        tokenizer: Of the model, with a chat template.
        context_tokens: Prompt and answer together.
        adapters: What its ``lora_request`` takes, by name.
        settings: How many pictures a prompt may have, and how large.
    """

    def __init__(
        self,
        engine: Any,
        tokenizer: Any,
        context_tokens: int,
        adapters: Mapping[str, Any],
        settings: VllmSettings,
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._tokenizer = tokenizer
        self._context_tokens = context_tokens
        self._adapters = adapters
        self._numbers = itertools.count()

    async def write(self, request: ChatRequest) -> AsyncIterator[ChatChunk]:
        """Write one answer; see ``ChatWriter``."""
        from vllm.exceptions import VLLMClientError, VLLMError
        from vllm.v1.engine.exceptions import EngineDeadError

        if request.adapter and request.adapter not in self._adapters:
            raise no_adapter(request.adapter, self._adapters)
        request = held_to_calls(request)
        prompt = self._read(request)
        shown = pictures_of(request, self._settings.pictures, self._settings.picture_pixels)
        inputs: dict[str, Any] = {"prompt_token_ids": prompt}
        if shown:
            inputs["multi_modal_data"] = {"image": shown}
        room = self._context_tokens - len(prompt)
        if room < 1:
            raise EngineError(
                f"the prompt has {len(prompt)} tokens; with an answer there is room for"
                f" {self._context_tokens}",
                code=CONTEXT_EXCEEDED,
            )
        written = 0
        try:
            async for output in self._engine.generate(
                inputs,
                _sampling(request, room),
                f"answer-{next(self._numbers)}",
                lora_request=self._adapters.get(request.adapter),
            ):
                (piece,) = output.outputs
                written += len(piece.token_ids)
                yield _chunk(piece.text, piece.finish_reason)
                if output.finished:
                    # With pictures it is longer than what was handed over.
                    read = len(output.prompt_token_ids or prompt)
                    yield _usage(read, written, output.num_cached_tokens or 0)
        except EngineDeadError as exc:
            raise WriterBroken(f"vLLM has died: {exc}") from exc
        except (VLLMClientError, ValueError) as exc:
            raise EngineError(
                "vLLM refuses the request", code=REQUEST_REFUSED, quote=str(exc)
            ) from exc
        except VLLMError as exc:
            raise EngineError("vLLM failed", quote=str(exc.__cause__ or exc)) from exc

    async def sleep(self, level: int) -> None:
        """Let memory go; see ``SleepingWriter``."""
        if level == DROPPED:
            self._engine.shutdown()
        elif self._settings.sleep_mode:
            await self._engine.sleep(level=level)
        else:
            raise EngineError(
                "vLLM sleeps at level 1 with sleep_mode: true in the stage's settings; level 2 "
                "needs nothing",
                code=SLEEP_UNSUPPORTED,
            )

    async def wake(self) -> None:
        """Have the weights on the device again."""
        await self._engine.wake_up()

    def _read(self, request: ChatRequest) -> Sequence[int]:
        """Return the prompt in tokens."""
        body = chat_body(request)
        prompt: Sequence[int] = self._tokenizer.apply_chat_template(
            template_messages(body),
            tools=body.tools,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=False,
        )
        return prompt


def _sampling(request: ChatRequest, room: int) -> Any:
    from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

    held = None
    if request.schema == _ANY_OBJECT:
        held = StructuredOutputsParams(json_object=True)
    elif request.schema:
        held = StructuredOutputsParams(json=request.schema)
    return SamplingParams(
        max_tokens=max(1, min(request.max_tokens, room)),
        temperature=request.temperature,
        top_p=request.top_p,
        seed=request.seed if request.temperature else None,
        stop=list(request.stop),
        structured_outputs=held,
        output_kind=RequestOutputKind.DELTA,
    )


def _chunk(text: str, finish_reason: str | None) -> ChatChunk:
    return chunk_from({"choices": [{"delta": {"content": text}, "finish_reason": finish_reason}]})


def _usage(read: int, written: int, cached: int) -> ChatChunk:
    details = {"cached_tokens": cached}
    usage = {"prompt_tokens": read, "completion_tokens": written, "prompt_tokens_details": details}
    return chunk_from({"usage": usage})


def build(settings: VllmSettings, wake: Wake) -> AsyncAnswers:
    """Load a model."""
    for path in (settings.model_path, *settings.adapters.values()):
        if not Path(path).is_dir():
            raise ConfigError(f"there is no folder {path}; put the model's files there")
    loop = loop_in_a_thread("vllm")
    writer = asyncio.run_coroutine_threadsafe(_load(settings), loop).result()
    return AsyncAnswers(writer, loop, settings.max_batch, wake)


async def _load(settings: VllmSettings) -> VllmWriter:
    # The library asks nobody else: no statistics, no look at the model hub.
    os.environ.update(VLLM_NO_USAGE_STATS="1", HF_HUB_OFFLINE="1")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", str(settings.cpu_cache_gb))
    from vllm.config import StructuredOutputsConfig
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.lora.request import LoRARequest
    from vllm.v1.engine.async_llm import AsyncLLM

    args = AsyncEngineArgs(
        model=settings.model_path,
        dtype=settings.dtype,
        max_model_len=settings.context_tokens or None,
        max_num_seqs=settings.max_batch,
        tensor_parallel_size=settings.tensor_parallel,
        distributed_executor_backend=settings.workers if settings.tensor_parallel > 1 else None,
        gpu_memory_utilization=settings.memory_share,
        enable_prefix_caching=settings.prefix_cache,
        enforce_eager=settings.eager,
        enable_lora=bool(settings.adapters),
        max_lora_rank=settings.adapter_rank,
        max_loras=max(1, len(settings.adapters)),
        # Without it a model may write blanks for ever where JSON allows them.
        structured_outputs_config=StructuredOutputsConfig(
            backend="guidance", disable_any_whitespace=True
        ),
        limit_mm_per_prompt={"image": settings.pictures} if settings.pictures else {},
        enable_sleep_mode=settings.sleep_mode,
        disable_log_stats=True,
    )
    engine = AsyncLLM.from_engine_args(args)
    adapters = {
        name: LoRARequest(name, number, path)
        for number, (name, path) in enumerate(settings.adapters.items(), 1)
    }
    length = engine.model_config.max_model_len
    return VllmWriter(engine, engine.get_tokenizer(), length, adapters, settings)


VLLM = RunnerType(VllmSettings, build, wakes_itself=True, sleep_levels=(1, 2))
