"""Servers of tiny models that speak: CSM, Qwen3-Omni's voice, and Qwen3-Omni as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from openai import AsyncOpenAI

from duologue.engines.settings import EngineSettings
from duologue.gateway.settings import GatewaySettings
from duologue.settings import ModelSettings, Settings
from tests.fakes.media_gateway import API_KEY, MediaGateway

FRAMES = 12
"""Of 80 ms, after which each utterance is cut."""

CSM = """
extends: csm
name: csm
stages:
  - name: csm
    executor: inline
    settings: {{folder: {folder}, device: cpu, dtype: float32, temperature: 0,
               max_frames: 12, threads: 1}}
"""
QWEN = """
extends: qwen3_omni_speech
name: qwen
speech: {{voices: [ethan, chelsie]}}
stages:
  - name: talker
    executor: inline
    settings: {{folder: {folder}, device: cpu, dtype: float32, temperature: 0,
               other_temperature: 0, max_frames: 12, threads: 1}}
  - name: codec
    executor: inline
    settings: {{folder: {folder}, device: cpu, threads: 1}}
"""
OMNI = """
extends: qwen3_omni_chat
name: omni
speech: {{voices: [ethan, chelsie]}}
stages:
  - name: thinker
    executor: inline
    settings: {{folder: {folder}, device: cpu, dtype: float32, threads: 1}}
  - name: talker
    executor: inline
    settings: {{folder: {folder}, device: cpu, dtype: float32, temperature: 0,
               other_temperature: 0, max_frames: 12, threads: 1}}
  - name: codec
    executor: inline
    settings: {{folder: {folder}, device: cpu, threads: 1}}
"""

PIPELINES = {"csm": (CSM, "csm"), "qwen": (QWEN, "qwen3_omni"), "omni": (OMNI, "qwen3_omni")}
"""Name of a pipeline -> its file, and the tiny model that it needs."""


def speech_settings(
    folder: Path, tiny_speech: Callable[[str], Path], *names: str, **more: Path
) -> Settings:
    """Settings of a server with some of the pipelines, each a model of its own name.

    Args:
        folder: Where their files are written.
        more: Further names for ``omni``, each with a checkpoint of its own.
    """
    texts = {
        name: PIPELINES[name][0].format(folder=tiny_speech(PIPELINES[name][1])) for name in names
    }
    for name, checkpoint in more.items():
        texts[name] = OMNI.format(folder=checkpoint).replace("name: omni", f"name: {name}")
    files = []
    for name, text in texts.items():
        files.append(folder / f"{name}.yaml")
        files[-1].write_text(text)
    return Settings(
        models=(ModelSettings(name="echo", plugin="echo"),),
        engine=EngineSettings(pipelines=(), pipeline_files=tuple(files)),
        gateway=GatewaySettings(port=0, drain_timeout_s=0, api_keys=(API_KEY,)),
    )


def client_of(gateway: MediaGateway) -> AsyncOpenAI:
    return AsyncOpenAI(api_key=API_KEY, base_url=f"{gateway.url}/v1", max_retries=0)
