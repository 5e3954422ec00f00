from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from duologue.core.errors import ClientError
from duologue.gateway.robot.observations import (
    STEPS_KEY,
    description,
    is_reset,
    observation_of,
)
from tests.fakes.tiny_policy import OFFER, observation

IMAGE, STATE = OFFER.cameras[0], OFFER.state_key
MISSING = object()


def test_an_observation_becomes_a_request() -> None:
    values = observation(session_id="one", **{STEPS_KEY: np.array(2, np.int32)})
    ask = observation_of(values, OFFER, 99)
    assert (ask.prompt, ask.steps, ask.seed) == ("fold", 2, 1)
    assert ask.images == tuple(np.asarray(values[name]).tobytes() for name in OFFER.cameras)
    assert (np.frombuffer(ask.state, "<f4") == np.asarray(values[STATE], "<f4")).all()
    plain = observation_of(observation(seed=None), OFFER, 99)
    assert (plain.steps, plain.seed) == (OFFER.steps, 99)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        (IMAGE, MISSING, "missing_required_parameter"),
        (IMAGE, "picture", "invalid_value"),
        (IMAGE, np.zeros((16, 24, 3), np.float32), "invalid_value"),
        (IMAGE, np.zeros((24, 16, 3), np.uint8), "invalid_value"),
        (STATE, np.zeros(9), "invalid_value"),
        (STATE, np.full(8, np.nan), "invalid_value"),
        (STATE, np.full(8, 1e300), "invalid_value"),
        ("prompt", MISSING, "missing_required_parameter"),
        ("prompt", 7, "invalid_value"),
        ("prompt", "ä" * 25, "limit_exceeded"),
        ("seed", -1, "invalid_value"),
        ("seed", True, "invalid_value"),
        (STEPS_KEY, 51, "invalid_value"),
        ("session_id", 7, "invalid_value"),
        ("observation/imagee", 7, "unknown_parameter"),
    ],
)
def test_what_the_policy_does_not_take_is_refused(name: str, value: Any, code: str) -> None:
    values = observation(**{name: value})
    if value is MISSING:
        del values[name]
    with pytest.raises(ClientError) as caught:
        observation_of(values, OFFER, 0)
    assert caught.value.code == code
    assert caught.value.param == name or code == "invalid_value"


def test_a_reset_is_told_from_an_observation() -> None:
    assert is_reset({"endpoint": "reset"})
    assert not is_reset({"endpoint": "infer"})
    assert not is_reset({})
    with pytest.raises(ClientError, match="'dance'"):
        is_reset({"endpoint": "dance"})
    for wrong in (np.zeros(2), np.zeros(1), [1, 2], None):
        with pytest.raises(ClientError, match="it may be infer or reset"):
            is_reset({"endpoint": wrong})


def test_a_client_is_told_what_to_send() -> None:
    told = description("tiny", OFFER)
    assert told["image_resolution"] == (16, 24)
    assert (told["action_horizon"], told["action_dim"]) == (5, 7)
