"""What the doctor needs to know of a machine: plain values, so that judging them needs no machine.

This module must not look at anything; ``probes`` does.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExtraFacts:
    """One extra of the package.

    Args:
        missing: Packages of it that are not installed.
    """

    name: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WeightFacts:
    """One artifact of the default set.

    Args:
        state: ``ready``, ``missing`` or ``incomplete``, by the sizes of its files.
        problem: What a check by hash found, where one was made.
        is_library: It comes with a Python package.
    """

    id: str
    size_bytes: int
    state: str
    problem: str = ""
    is_library: bool = False


@dataclass(frozen=True, slots=True)
class PortFacts:
    """The port that ``duologue serve`` would take.

    Args:
        taken_by: ``""``: it is free; ``duologue``: by one of ours; else what is known.
    """

    host: str
    port: int
    taken_by: str


@dataclass(frozen=True, slots=True)
class SoundFacts:
    """Microphones and loudspeakers.

    Args:
        problem: Why there is no telling.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """All of it.

    Args:
        python: Version, as (3, 11, 7).
        load: Average over the last minute; ``None`` where the system does not tell.
        pip, duologue: What runs these programs of this environment, as one would type it.
    """

    python: tuple[int, int, int]
    cores: int
    load: float | None
    memory_bytes: int | None
    extras: tuple[ExtraFacts, ...]
    cache_dir: str
    free_disk_bytes: int
    cache_writable: bool
    weights: tuple[WeightFacts, ...]
    port: PortFacts
    sound: SoundFacts
    pip: str = "pip"
    duologue: str = "duologue"
