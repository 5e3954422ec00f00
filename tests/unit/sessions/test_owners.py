from __future__ import annotations

import pytest

from duologue.core.errors import RateLimited
from duologue.sessions.owners import ANYBODY, Owner, Owners
from duologue.telemetry import LabelSets, Metrics

TWO = Owner("kitchen", max_sessions=2)


def test_an_owner_has_no_more_sessions_open_than_it_may() -> None:
    metrics = Metrics(LabelSets(keys=("kitchen", "anybody")))
    owners = Owners(metrics)
    for _ in range(2):
        owners.check(TWO)
        owners.add(TWO)
    with pytest.raises(RateLimited, match="limit is 2") as caught:
        owners.check(TWO)
    assert caught.value.code == "too_many_sessions"
    assert metrics.key_sessions["kitchen"].value == 2
    assert metrics.key_refused["kitchen"].value == 1
    owners.check(ANYBODY)
    owners.remove(TWO)
    owners.check(TWO)
    assert metrics.key_sessions["kitchen"].value == 1
