"""Where the benchmarks keep what they build and download: outside the repository."""

import os
from pathlib import Path


def bench_cache() -> Path:
    """The folder for compiled programs and environments, created when it is missing.

    Follows ``DUOLOGUE_CACHE`` like everything else that Duologue caches.
    """
    root = os.environ.get("DUOLOGUE_CACHE") or Path.home() / ".cache" / "duologue"
    folder = Path(root) / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def models_folder() -> Path:
    """Where `duologue models pull` puts the weights."""
    return bench_cache().parent / "models"
