"""Mutated bodies on every plain HTTP route, a few hundred; ``make fuzz`` sends many more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.http_fuzz import fuzz

COUNT = 50
"""For each route."""


async def test_no_body_is_answered_with_a_500_and_each_refusal_has_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    found = await fuzz(tmp_path, COUNT, seed=1)
    chat = {key: times for key, times in found.items() if key.startswith("/v1/chat/")}
    assert sum(chat.values()) == COUNT
    # The mutator is neither so mild nor so wild that only one thing is tested.
    assert chat["/v1/chat/completions: taken"] > COUNT / 20
    assert len(chat) > 5
    calls = {key: times for key, times in found.items() if key.startswith("/v1/realtime/calls: ")}
    assert calls["/v1/realtime/calls: taken"] > COUNT / 20
    assert len(calls) > 3
    for path in ("images/generations", "audio/generations", "videos/sync", "omni/sleep"):
        assert 0 < found[f"/v1/{path}: taken"] < COUNT
