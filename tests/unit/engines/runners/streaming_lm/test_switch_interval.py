from __future__ import annotations

import sys

import pytest

from duologue.engines.runners.streaming_lm.switch_interval import (
    SWITCH_INTERVAL_S,
    prompt_switches,
)

pytestmark = pytest.mark.torch


def test_threads_take_turns_quickly_until_the_last_one_is_done() -> None:
    before = sys.getswitchinterval()
    with prompt_switches():
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
        with prompt_switches():
            pass
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
    assert sys.getswitchinterval() == pytest.approx(before)


def test_one_that_fails_asks_for_nothing_any_more() -> None:
    before = sys.getswitchinterval()
    with pytest.raises(KeyError), prompt_switches():
        raise KeyError
    assert sys.getswitchinterval() == pytest.approx(before)
