from __future__ import annotations

import pytest

from duologue.core.errors import ConfigError
from duologue.engines.pipeline import Pipeline, Resources, StageSpec, check_names
from duologue.engines.placement import bundle_of, placements_of
from duologue.engines.runners.registry import RunnerRegistry


def stage(name: str = "voice", **fields: object) -> StageSpec:
    return StageSpec(name=name, runner="script", **{"executor": "ray", **fields})


def check(spec: StageSpec) -> None:
    check_names(Pipeline(name="speech", stages=(spec,)), RunnerRegistry.installed())


@pytest.mark.parametrize(
    ("fields", "bundle"),
    [
        ({}, {"CPU": 1.0}),
        ({"devices": ("cpu",)}, {"CPU": 1.0}),
        ({"devices": ("cuda",)}, {"CPU": 1.0, "GPU": 1.0}),
        (
            {"devices": ("cuda:0",), "resources": Resources(cpus=2, gpus=0.5)},
            {"CPU": 2.0, "GPU": 0.5},
        ),
        (
            {"resources": Resources(cpus=0, memory_bytes=2**30, others={"h200": 1})},
            {"memory": 2**30, "h200": 1},
        ),
    ],
)
def test_what_a_worker_takes_follows_from_resources_and_devices(
    fields: dict[str, object], bundle: dict[str, float]
) -> None:
    assert bundle_of(stage(**fields)) == bundle


def test_all_workers_of_a_pipeline_that_are_in_a_cluster_are_one_group() -> None:
    pipeline = Pipeline(
        name="speech",
        placement="strict_spread",
        stages=(
            stage("words", replicas=2),
            stage("here", executor="process"),
            stage("tones", devices=("cuda",)),
        ),
    )
    places = placements_of(pipeline)
    assert places.keys() == {"words", "tones"}
    words, tones = {"CPU": 1.0}, {"CPU": 1.0, "GPU": 1.0}
    indices = [(place.index, place.bundle) for each in places.values() for place in each]
    assert indices == [(0, words), (1, words), (2, tones)]
    for each in places.values():
        for place in each:
            assert (place.group, place.strategy) == ("speech", "STRICT_SPREAD")
            assert place.bundles == (words, words, tones)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (stage(executor="process", resources=Resources()), "resources are for executors"),
        (stage(resources=Resources(cpus=0)), "takes something"),
        (stage(resources=Resources(others={"GPU": 1})), "'GPU' has a name of its own"),
        (stage(devices=("cuda:1",)), "'cuda:1' would be out of reach"),
        (stage(env={"CUDA_VISIBLE_DEVICES": "1"}), "CUDA_VISIBLE_DEVICES is for the cluster"),
    ],
)
def test_what_makes_no_sense_is_refused(spec: StageSpec, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        check(spec)


def test_what_makes_sense_is_not() -> None:
    check(stage(devices=("cuda",), resources=Resources(others={"h200": 1}), env={"A": "b"}))
