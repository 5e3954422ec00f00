"""What every test runs under: a loop that must not be blocked, and no task left behind."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import structlog
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings

settings.register_profile("push", max_examples=100, stateful_step_count=50, deadline=None)
settings.register_profile(
    "nightly",
    max_examples=20_000,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("push")

NEED_TORCH = [
    "golden/mimi",
    "golden/moshi_lm",
    "kernels",
    "path/test_lockstep_path.py",
    "unit/codecs/mimi",
    "unit/engines/models",
    "unit/engines/runners/diffusion/test_device_errors.py",
    "unit/engines/runners/diffusion/test_device_queue.py",
    "unit/engines/runners/diffusion/test_projection_cache.py",
    "unit/engines/runners/diffusion/test_tensor_store.py",
    "unit/engines/transport/test_cuda_ipc.py",
    "unit/engines/transport/test_device_slab.py",
]
"""Folders whose tests carry the marker ``torch``; without it they cannot even be loaded."""

NEED_TORCH_TOO = ["unit/bench/test_moshi_*.py", "unit/engines/runners/streaming_lm/test_*.py"]
"""Likewise the tests that match; folders in there do not."""

_OF_THE_RUNNER = Path("unit/engines/runners/diffusion")
NEED_DIFFUSERS = [
    *(
        str(_OF_THE_RUNNER / path.name)
        for path in (Path(__file__).parent / _OF_THE_RUNNER).glob("test_*.py")
        if "pytest.mark.diffusion" in path.read_text()
    ),
    "conformance/test_diffusion.py",
    "conformance/test_diffusion_sounds.py",
]
"""Files whose tests carry the marker ``diffusion``, likewise."""

NEED_SPEECH = [
    "conformance/test_omni_call.py",
    "conformance/test_omni_speech.py",
    "conformance/test_speech_models.py",
    "path/test_speech_path.py",
    "unit/codecs/mimi/test_hub_layout.py",
    "unit/engines/models/test_checkpoint_folder.py",
    *(f"unit/engines/models/{each}" for each in ("code2wav", "code_talker", "decoder")),
    *(
        f"unit/engines/runners/speech/test_{each}.py"
        for each in (
            *("code2wav_codec", "csm", "mimi_codec", "qwen3_omni", "text_tokens"),
            *("chat_template", "qwen3_omni_conversation", "saying"),
            *("qwen3_omni_prompt", "qwen3_omni_senses"),
            *("qwen3_omni_thinker", "qwen_talker", "torch_settings", "vits"),
        )
    ),
]
"""Files whose tests carry the marker ``speech``: they need torch, tokenizers and transformers."""

ROOT = Path(__file__).parents[1]
QWEN_TTS_PYTHON = Path(os.environ.get("TEST_QWEN_TTS_PYTHON", ROOT / ".venv-qwen-tts/bin/python"))
"""The Python that has ``qwen-tts``, which asks for packages of its own."""

NEED_QWEN_TTS = ["unit/engines/runners/speech/test_qwen3_tts.py"]

HAS_SPEECH = all(find_spec(each) for each in ("torch", "tokenizers", "transformers"))

NEED_AIOSQLITE = [
    "unit/jobs",
    *(f"unit/gateway/http/test_{each}.py" for each in ("images", "media", "videos")),
    "unit/gateway/ws/test_video_stream.py",
    "browser/test_video_stream.py",
    "conformance/test_openai_media.py",
    "faults/test_killed_jobs.py",
]
"""Files that need a package of the server which environments of before it do not have."""

NEED_REDIS = ["faults/test_redis_gone.py", "unit/hosts/test_redis_directory.py"]
"""Tests with a real Redis: they need the package and the program ``redis-server``."""

NEED_ZEROMQ = [
    "state/test_transport_zeromq.py",
    "unit/engines/executors/test_remote_payloads.py",
    "unit/engines/transport/test_questions.py",
    "unit/engines/transport/test_remote_engine.py",
    "unit/engines/transport/test_remote_seat.py",
    "unit/engines/transport/test_remote_worker.py",
    "unit/engines/transport/test_zeromq.py",
]
"""Files that need pyzmq, which environments of before it do not have."""

NEED_NIXL = ["state/test_transport_nixl.py", "unit/engines/transport/test_nixl.py"]
"""Files that need NIXL, which is large, and pyzmq (make check-nixl)."""

NEED_RAY = ["cluster", "unit/engines/executors/ray/test_cluster.py"]
"""Tests with a real Ray, on a cluster that they start."""

HAS_REDIS = find_spec("redis") is not None and shutil.which("redis-server") is not None

collect_ignore = [
    *([] if find_spec("aiosqlite") else NEED_AIOSQLITE),
    *([] if find_spec("torch") else NEED_TORCH),
    *([] if find_spec("diffusers") else NEED_DIFFUSERS),
    *([] if HAS_SPEECH else NEED_SPEECH),
    *([] if HAS_SPEECH and QWEN_TTS_PYTHON.exists() else NEED_QWEN_TTS),
    *([] if find_spec("vllm") else ["unit/engines/runners/llm/test_vllm.py"]),
    *([] if HAS_REDIS else NEED_REDIS),
    *([] if find_spec("zmq") else NEED_ZEROMQ),
    *([] if find_spec("zmq") and find_spec("nixl_cu12") else NEED_NIXL),
    *([] if find_spec("ray") else NEED_RAY),
]
collect_ignore_glob = [] if find_spec("torch") else NEED_TORCH_TOO


@pytest.fixture(scope="session")
def tiny_speech(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Give the folder of a tiny speech model, made once; see ``tests.fakes.tiny_speech``."""
    from tests.fakes.tiny_speech.make import make

    folder = tmp_path_factory.mktemp("tiny_speech")
    return cache(lambda name: make(name, folder / name))


@pytest.fixture(autouse=True)
def quiet_logs() -> Iterator[None]:
    """Write logs nowhere, and undo what a test does to the pipeline.

    ``structlog.testing.capture_logs`` sees them all the same.
    """
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    structlog.configure(
        processors=[structlog.processors.JSONRenderer(default=repr)],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=structlog.ReturnLoggerFactory(),
        cache_logger_on_first_use=False,
    )
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(autouse=True)
def strict_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold async tests to the rules of the loop; plain tests pass through untouched.

    Our code must not block the loop (``duologue`` frames only: a test may read a file). The check
    for tasks is set up before the test's own fixtures, so that it runs after they are gone.
    """
    if not inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        yield
        return
    request.getfixturevalue("_clean_loop")
    with blockbuster_ctx("duologue") as blockbuster:
        for function in blockbuster.functions.values():
            # A server reads its files when it starts, before it serves anybody.
            function.can_block_in("duologue/app.py", "running_app")
            function.can_block_in("duologue/composition/engine_side.py", "make_engine_side")
            function.can_block_in("duologue/composition/gateway_side.py", "make_gateway_side")
            function.can_block_in("duologue/composition/edge.py", "running_edge")
            # aiortc waits for a thread that has just been told to end.
            function.can_block_in("aiortc/rtcrtpreceiver.py", "__stop_decoder")
        yield


@pytest_asyncio.fixture
async def _clean_loop() -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    ours = asyncio.all_tasks()
    complaints: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    yield
    for _ in range(3):  # a task that was cancelled in a teardown needs a turn of the loop to end
        await asyncio.sleep(0)
    leaked = asyncio.all_tasks() - ours - {asyncio.current_task()}
    assert not leaked, f"tasks left behind: {sorted(task.get_name() for task in leaked)}"
    assert not complaints, f"the loop complained: {complaints}"
