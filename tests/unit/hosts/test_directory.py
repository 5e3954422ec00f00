from __future__ import annotations

import msgspec

from duologue.hosts.directory import HostEntry


def test_an_entry_is_what_another_machine_needs_to_know() -> None:
    entry = HostEntry(tag="abc123", address="10.0.0.1", port=9000, free=3)
    assert msgspec.json.decode(msgspec.json.encode(entry), type=HostEntry) == entry
