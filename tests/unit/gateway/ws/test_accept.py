from __future__ import annotations

import sys
from types import ModuleType

import pytest
from structlog.testing import capture_logs

from duologue.gateway.ws import callback_channel, loop_channel
from duologue.gateway.ws.accept import choose_accept

MODULE = "duologue.gateway.ws.callback_channel"


def test_the_settings_decide_where_both_work() -> None:
    with capture_logs() as logs:
        assert choose_accept(True) is callback_channel.accept
        assert choose_accept(False) is loop_channel.accept
    assert logs == []


def test_another_aiohttp_costs_more_and_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, None)
    monkeypatch.delattr("duologue.gateway.ws.callback_channel")
    with capture_logs() as logs:
        assert choose_accept(True) is loop_channel.accept
    assert [entry["event"] for entry in logs] == ["callback_reader_unavailable"]


def test_a_reader_that_fails_its_trial_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ModuleType(MODULE)
    other.callback_reader_works = lambda: False
    monkeypatch.setitem(sys.modules, MODULE, other)
    monkeypatch.setattr("duologue.gateway.ws.callback_channel", other)
    with capture_logs() as logs:
        assert choose_accept(True) is loop_channel.accept
    assert [entry["event"] for entry in logs] == ["callback_reader_unavailable"]
