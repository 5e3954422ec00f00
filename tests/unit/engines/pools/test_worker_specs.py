from __future__ import annotations

from duologue.engines.messages import Placement, WorkerSpec
from duologue.engines.pipeline import StageSpec
from duologue.engines.pools.worker_specs import worker_spec
from duologue.engines.ports import WorkClass


def test_a_worker_is_told_all_that_its_stage_says() -> None:
    stage = StageSpec(
        name="draw",
        runner="sketch",
        executor="ray",
        replicas=2,
        devices=("cuda:0", "cuda:1"),
        scheduler="continuous",
        work_class=WorkClass.BATCH,
        env={"A": "1"},
        interpreter="/other/python",
        settings={"width": 8},
        transport="zeromq",
        slab_mib=3,
    )
    placement = Placement(group="pictures", strategy="PACK", bundles=({"CPU": 1.0},), index=0)
    assert worker_spec(stage, "pictures.draw", 1, placement, relays=True, share=None) == WorkerSpec(
        name="pictures.draw/1",
        runner="sketch",
        settings={"width": 8, "device": "cuda:1"},
        scheduler="continuous",
        work_class=WorkClass.BATCH,
        env={"A": "1"},
        interpreter="/other/python",
        placement=placement,
        transport="zeromq",
        slab_bytes=3 * 2**20,
        relays=True,
    )


def test_a_stage_without_devices_leaves_its_runner_to_its_settings() -> None:
    spec = worker_spec(StageSpec(name="a", runner="tone"), "a", 0, None, relays=False, share=None)
    assert spec == WorkerSpec(name="a/0", runner="tone")
