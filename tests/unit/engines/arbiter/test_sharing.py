from __future__ import annotations

import math

import pytest

from duologue.core.errors import ConfigError
from duologue.engines.arbiter.sharing import SharedDevice, device_of, shared_devices, worker_name
from duologue.engines.pipeline import Pipeline, StageSpec
from duologue.engines.ports import WorkClass


def pipeline(name: str, work_class: WorkClass, *devices: str, **more: object) -> Pipeline:
    stage = StageSpec(
        name=name,
        runner="script",
        work_class=work_class,
        devices=devices,
        **more,  # type: ignore[arg-type]
    )
    return Pipeline(name=name, stages=(stage,))


CALLS = pipeline("calls", WorkClass.REALTIME, "cuda:0", deadline_ms=80)
DETECTOR = pipeline("detector", WorkClass.REALTIME, "cuda:0", deadline_ms=32)
PICTURES = pipeline("pictures", WorkClass.BATCH, "cuda:0", "cuda:1", replicas=2)


def test_a_device_of_calls_and_pictures_is_shared_with_the_shortest_period() -> None:
    assert shared_devices([CALLS, PICTURES, DETECTOR], {}) == {
        "cuda:0": SharedDevice(["calls/0", "pictures/0", "detector/0"], 0.032)
    }


def test_a_device_of_one_kind_of_work_needs_no_arbiter() -> None:
    assert shared_devices([CALLS, DETECTOR], {}) == {}
    assert shared_devices([PICTURES], {}) == {}


def test_a_device_with_a_budget_is_shared_by_whoever_is_there() -> None:
    assert shared_devices([PICTURES], {"cuda:1": 500}) == {
        "cuda:1": SharedDevice(["pictures/1"], math.inf, 500)
    }


def test_a_budget_for_a_device_that_nobody_uses_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'cuda:7'.*cuda:0, cuda:1"):
        shared_devices([PICTURES], {"cuda:7": 500})


def test_a_realtime_stage_must_say_how_often_it_steps() -> None:
    silent = pipeline("silent", WorkClass.REALTIME, "cuda:0")
    with pytest.raises(ConfigError, match=r"'silent'.*'cuda:0'.*deadline_ms"):
        shared_devices([silent, PICTURES], {})


def test_stages_without_a_device_and_those_in_a_cluster_share_none() -> None:
    far = pipeline("far", WorkClass.REALTIME, "cuda:0", executor="ray", deadline_ms=80)
    nowhere = pipeline("nowhere", WorkClass.REALTIME, deadline_ms=80)
    assert shared_devices([far, nowhere, PICTURES], {}) == {}


def test_devices_are_given_in_turn() -> None:
    (stage,) = PICTURES.stages
    assert [device_of(stage, number) for number in range(3)] == ["cuda:0", "cuda:1", "cuda:0"]
    assert worker_name("pictures", 1) == "pictures/1"
