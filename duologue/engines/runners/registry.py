"""Which runner a name means, without importing any model library before it is needed.

A runner ships as a ``RunnerType``: its settings class and how it is built. Runners of other
packages are found by the entry point group ``duologue.runners``, in the same ``module:NAME`` form;
a pipeline may also say that form itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from duologue.core.errors import ConfigError
from duologue.engines.runners.contract import Runner

ENTRY_POINT_GROUP = "duologue.runners"

BUILT_IN: Mapping[str, str] = {
    "csm": "duologue.engines.runners.speech.csm:CSM",
    "diffusion": "duologue.engines.runners.diffusion.runner:DIFFUSION",
    "energy_vad": "duologue.engines.runners.vad.energy:ENERGY_VAD",
    "fixed_end_of_turn": "duologue.engines.runners.end_of_turn.fixed:FIXED_END_OF_TURN",
    "hibari": "duologue.engines.runners.tts.hibari:HIBARI",
    "llama_cpp": "duologue.engines.runners.llm.llama_cpp:LLAMA_CPP",
    "openai_chat": "duologue.engines.runners.llm.openai_url:OPENAI_CHAT",
    "openai_speech": "duologue.engines.runners.tts.openai_url:OPENAI_SPEECH",
    "openai_transcribe": "duologue.engines.runners.asr.openai_url:OPENAI_TRANSCRIBE",
    "policy": "duologue.engines.runners.policy.runner:POLICY",
    "qwen3_omni": "duologue.engines.runners.speech.qwen3_omni:QWEN3_OMNI",
    "qwen3_omni_thinker": ("duologue.engines.runners.speech.qwen3_omni_thinker:QWEN3_OMNI_THINKER"),
    "qwen3_tts": "duologue.engines.runners.speech.qwen3_tts:QWEN3_TTS",
    "script": "duologue.engines.runners.scripted:SCRIPT",
    "silero_vad": "duologue.engines.runners.vad.silero:SILERO_VAD",
    "sketch": "duologue.engines.runners.sketch:SKETCH",
    "smart_turn": "duologue.engines.runners.end_of_turn.smart_turn:SMART_TURN",
    "streaming_lm": "duologue.engines.runners.streaming_lm.runner:STREAMING_LM",
    "tone": "duologue.engines.runners.scripted:TONE",
    "vits": "duologue.engines.runners.speech.vits:VITS",
    "vllm": "duologue.engines.runners.llm.vllm:VLLM",
    "webrtc_vad": "duologue.engines.runners.vad.webrtc:WEBRTC_VAD",
    "whisper": "duologue.engines.runners.asr.whisper:WHISPER",
}
"""Name of a runner -> where its ``RunnerType`` is."""

SETTINGS: Mapping[str, str] = {
    "diffusion": "duologue.engines.runners.diffusion.settings:DiffusionSettings",
}
"""Name of a runner -> its settings class, where that can be had without the model's library: a
pipeline that would be refused in the worker is refused before."""

Wake = Callable[[], None]
"""Tells the worker from any thread that a job may have become ready."""

S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class RunnerType(Generic[S]):
    """How a runner is made from the settings of its stage.

    Args:
        settings: A msgspec Struct, frozen and with ``forbid_unknown_fields``.
        build: Loads the model. Runs in the worker, so this is where libraries are imported.
        wakes_itself: The runner gets news from elsewhere than its jobs' inputs, as from a network
            connection. It then calls ``wake`` when ``ready`` may have changed, and it alone says
            when a job is done. A job of any other runner is complete once its input has ended
            and ``ready`` says no.
        sleep_levels: At which it can sleep (see ``lifecycle_port``). 2: its memory is free once
            nobody holds it, and it can be built again. 1: it is a ``Sleeper``.
    """

    settings: type[S]
    build: Callable[[S, Wake], Runner]
    wakes_itself: bool = False
    sleep_levels: tuple[int, ...] = ()

    @classmethod
    def plain(
        cls,
        settings: type[S],
        build: Callable[[S], Runner],
        sleep_levels: tuple[int, ...] = (),
    ) -> RunnerType[S]:
        """Make the type of a runner that only ever waits for its jobs' inputs."""
        return cls(settings, lambda values, _wake: build(values), sleep_levels=sleep_levels)


class Built(NamedTuple):
    """A runner that is ready to be warmed up."""

    runner: Runner
    wakes_itself: bool
    sleep_levels: tuple[int, ...] = ()


def from_entry_points() -> Mapping[str, str]:
    """Return the runners of other installed packages."""
    # Costs a worker more to import than all else that it needs, and few workers need it.
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=ENTRY_POINT_GROUP)}


class RunnerRegistry:
    """Runner types by name.

    Args:
        paths: Name -> ``module:NAME``.
        discover: Finds further ones; called when a name is not in ``paths``.
    """

    def __init__(
        self, paths: Mapping[str, str], discover: Callable[[], Mapping[str, str]] | None = None
    ) -> None:
        self._paths = dict(paths)
        self._discover = discover

    @classmethod
    def installed(cls) -> RunnerRegistry:
        """Return the built-in runners and those of installed packages."""
        return cls(BUILT_IN, from_entry_points)

    def __contains__(self, name: str) -> bool:
        if ":" in name:
            return True
        if name not in self._paths:
            self._look_further()
        return name in self._paths

    def names(self) -> list[str]:
        """All names, sorted."""
        self._look_further()
        return sorted(self._paths)

    def load(self, name: str) -> RunnerType[Any]:
        """Import the module of a runner.

        Raises:
            ConfigError: No such runner, or its module lacks a library.
        """
        if name not in self:
            raise ConfigError(f"no runner is called {name!r}; there are {', '.join(self.names())}")
        path = self._paths.get(name, name)
        module_name, _, attribute = path.partition(":")
        try:
            found = getattr(importlib.import_module(module_name), attribute, None)
        except ImportError as exc:
            raise ConfigError(
                f"the runner {name!r} needs a package that is missing: {exc}"
            ) from exc
        if not isinstance(found, RunnerType):
            raise ConfigError(f"{path} is not a RunnerType (runner {name!r})")
        return found

    def check_settings(self, name: str, settings: Mapping[str, Any]) -> None:
        """Check the raw settings of a stage, as far as no model library is needed for it.

        Raises:
            ConfigError: A setting is unknown or has a wrong value.
        """
        path = SETTINGS.get(name)
        if path is None or self._paths.get(name) != BUILT_IN[name]:
            return
        module_name, _, attribute = path.partition(":")
        _converted(name, settings, getattr(importlib.import_module(module_name), attribute))

    def build(self, name: str, settings: Mapping[str, Any], wake: Wake) -> Built:
        """Make a runner from the raw settings of its stage.

        Raises:
            ConfigError: As ``load``, or a setting is unknown or has a wrong value.
        """
        return self.make(name, self.load(name), settings, wake)

    @staticmethod
    def make(
        name: str, runner_type: RunnerType[Any], settings: Mapping[str, Any], wake: Wake
    ) -> Built:
        """Make a runner of a type that was loaded; raises as ``build``."""
        values = _converted(name, settings, runner_type.settings)
        return Built(
            runner_type.build(values, wake), runner_type.wakes_itself, runner_type.sleep_levels
        )

    def _look_further(self) -> None:
        if self._discover is not None:
            self._paths = {**self._discover(), **self._paths}
            self._discover = None


def _converted(name: str, settings: Mapping[str, Any], kind: type[S]) -> S:
    try:
        return msgspec.convert(settings, kind)
    except msgspec.ValidationError as exc:
        known = ", ".join(field.name for field in msgspec.structs.fields(kind))
        raise ConfigError(f"settings of the runner {name!r}: {exc}; it takes {known}") from exc
