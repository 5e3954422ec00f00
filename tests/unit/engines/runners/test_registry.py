from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pytest

from duologue.core.errors import ConfigError
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import (
    BUILT_IN,
    SETTINGS,
    RunnerRegistry,
    RunnerType,
    Wake,
)
from duologue.engines.runners.scripted import ToneRunner


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    size: int = 1


class Remote:
    max_batch = 1

    def __init__(self, settings: Settings, wake: Wake) -> None:
        self.settings = settings
        self.wake = wake

    def warm_up(self) -> None: ...

    def open(self, job: Job) -> None: ...

    def ready(self, job: Job) -> bool:
        return False

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        return []

    def close(self, job: Job) -> None: ...


REMOTE = RunnerType(Settings, Remote, wakes_itself=True)


def no_wake() -> None:
    raise AssertionError("nobody woke")


@pytest.mark.parametrize("name", ["script", "tone", "energy_vad"])
def test_a_built_in_runner_is_found_and_built_with_its_defaults(name: str) -> None:
    built = RunnerRegistry.installed().build(name, {}, no_wake)
    assert built.runner.max_batch > 0
    assert not built.wakes_itself


def test_settings_reach_the_runner_typed() -> None:
    registry = RunnerRegistry(BUILT_IN)
    built = registry.build("tone", {"chunk_ms": [50, 200], "fault": {"kind": "raise"}}, no_wake)
    assert isinstance(built.runner, ToneRunner)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [({"loudness": 1}, "loudness"), ({"max_batch": "many"}, "max_batch")],
)
def test_wrong_settings_are_refused_with_the_name(
    settings: Mapping[str, object], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=f"'tone'.*{complaint}"):
        RunnerRegistry(BUILT_IN).build("tone", settings, no_wake)


def test_a_runner_that_wakes_itself_gets_the_means_to() -> None:
    built = RunnerRegistry({"remote": "REMOTE"}, lambda: {"remote": "never asked"})
    assert built.names() == ["remote"]
    runner = REMOTE.build(Settings(size=3), no_wake)
    assert isinstance(runner, Remote)
    assert (runner.settings.size, runner.wake) == (3, no_wake)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'organ'; there are .*tone"):
        RunnerRegistry(BUILT_IN).load("organ")


def test_other_packages_are_asked_only_for_names_that_are_not_known() -> None:
    asked = []

    def discover() -> Mapping[str, str]:
        asked.append(1)
        return {"tone": "theirs:TONE", "organ": "duologue.engines.runners.scripted:SCRIPT"}

    registry = RunnerRegistry(BUILT_IN, discover)
    assert "tone" in registry
    assert asked == []
    assert "organ" in registry
    assert "harp" not in registry
    assert asked == [1]
    assert registry.load("tone").settings.__name__ == "ToneSettings", "ours are not replaced"


def test_settings_are_those_that_the_runner_itself_takes() -> None:
    registry = RunnerRegistry(BUILT_IN)
    for name in SETTINGS:
        assert name in BUILT_IN
        with pytest.raises(ConfigError, match=f"{name}.*no_such_setting"):
            registry.check_settings(name, {"folder": "x", "no_such_setting": 1})
    registry.check_settings("tone", {"no_such_setting": 1})  # its module says, in the worker
    theirs = RunnerRegistry({"diffusion": "their.module:DIFFUSION"})
    theirs.check_settings("diffusion", {"no_such_setting": 1})


def test_a_module_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'organ'.*no_such_library"):
        RunnerRegistry({"organ": "no_such_library.organ:ORGAN"}).load("organ")


def test_what_is_no_runner_type_is_refused() -> None:
    with pytest.raises(ConfigError, match="ToneRunner is not a RunnerType"):
        RunnerRegistry({"t": "duologue.engines.runners.scripted:ToneRunner"}).load("t")


def test_a_runner_is_found_by_its_place() -> None:
    registry = RunnerRegistry.installed()
    place = "duologue.engines.runners.scripted:TONE"
    assert place in registry
    assert isinstance(registry.build(place, {}, no_wake).runner, ToneRunner)
    with pytest.raises(ConfigError, match=r"scripted:NOTHING is not a RunnerType"):
        registry.load("duologue.engines.runners.scripted:NOTHING")
