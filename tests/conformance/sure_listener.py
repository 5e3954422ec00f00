"""An end-of-turn model that is always sure: the person has finished. Without weights."""

from __future__ import annotations

from pathlib import Path

import msgspec

from duologue.engines.runners.end_of_turn.smart_turn import SmartTurnRunner
from duologue.engines.runners.registry import RunnerType


class NoSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing to set."""


LISTENER = RunnerType.plain(NoSettings, lambda _settings: SmartTurnRunner(lambda _features: 0.99))


def install_listener(folder: Path) -> None:
    """Make a package of it, as far as finding it is concerned."""
    metadata = folder / "sure_listener-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: sure-listener\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[duologue.runners]\nLISTENER = tests.conformance.sure_listener:LISTENER\n"
    )
