"""What the workers of a stage are told to become. Pure.

This module must not know how workers are started.
"""

from __future__ import annotations

from duologue.engines.arbiter.sharing import device_of, worker_name
from duologue.engines.messages import Placement, Share, WorkerSpec
from duologue.engines.pipeline import StageSpec


def worker_spec(
    spec: StageSpec,
    key: str,
    number: int,
    placement: Placement | None,
    relays: bool,
    share: Share | None,
) -> WorkerSpec:
    """Return what one worker is told.

    Args:
        key: Names its stage among all pipelines.
        number: Which of its stage's workers it is.
        placement, relays, share: As of ``WorkerSpec``.
    """
    device = device_of(spec, number)
    return WorkerSpec(
        name=worker_name(key, number),
        runner=spec.runner,
        settings={**spec.settings, **({} if device is None else {"device": device})},
        scheduler=spec.scheduler,
        work_class=spec.work_class,
        env=spec.env,
        interpreter=spec.interpreter,
        transport=spec.transport,
        slab_bytes=spec.slab_mib * 2**20,
        relays=relays,
        placement=placement,
        share=share,
    )
