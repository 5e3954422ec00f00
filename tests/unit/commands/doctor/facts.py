"""A machine on which everything is there."""

from __future__ import annotations

from duologue.commands.doctor.facts import (
    ExtraFacts,
    MachineFacts,
    PortFacts,
    SoundFacts,
    WeightFacts,
)

HEALTHY = MachineFacts(
    python=(3, 11, 7),
    cores=2,
    load=0.5,
    memory_bytes=8_000_000_000,
    extras=(ExtraFacts("server", ()), ExtraFacts("local", ()), ExtraFacts("audio", ())),
    cache_dir="/cache",
    free_disk_bytes=10_000_000_000,
    cache_writable=True,
    weights=(
        WeightFacts("ears", 2_000_000, "ready"),
        WeightFacts("voice", 12_000_000, "ready", is_library=True),
    ),
    port=PortFacts("127.0.0.1", 8080, ""),
    sound=SoundFacts(("Microphone",), ("Speaker",)),
)
