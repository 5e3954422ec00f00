from __future__ import annotations

import msgspec
import numpy as np
import pytest

from duologue.engines.runners.policy.flow import FlowPolicy, weight_shapes
from tests.fakes.tiny_policy import CONFIG, random_weights
from tests.unit.engines.runners.policy.reference_flow import reference_actions

STEPS = 3


@pytest.mark.parametrize("prompt", [b"", b"fold the shirt"])
def test_actions_are_those_of_the_model_written_down_plainly(prompt: bytes) -> None:
    weights = random_weights()
    policy = FlowPolicy(CONFIG, weights)
    draw = np.random.default_rng(5)
    size = (CONFIG.cameras, CONFIG.image_height, CONFIG.image_width, 3)
    pictures = draw.integers(0, 256, size, np.uint8)
    state = draw.standard_normal(CONFIG.state_dim, np.float32)
    actions = noise = policy.noise(11)
    read = policy.read(pictures, state, prompt)
    for step in range(STEPS):
        velocity = policy.velocity(read, actions, 1 - step / STEPS)
        assert velocity.dtype == np.float32
        actions = actions - velocity / np.float32(STEPS)
    wanted = reference_actions(CONFIG, weights, pictures, state, prompt, noise, STEPS)
    assert np.abs(wanted - noise).max() > 0.1
    np.testing.assert_allclose(actions, wanted, atol=2e-5)


def test_noise_is_that_of_its_seed() -> None:
    policy = FlowPolicy(CONFIG, random_weights())
    assert (policy.noise(1) == policy.noise(1)).all()
    assert (policy.noise(1) != policy.noise(2)).any()


def test_what_cannot_be_is_said() -> None:
    assert CONFIG.fault() is None
    assert "patches of 7" in str(msgspec.structs.replace(CONFIG, patch=7).fault())
    assert "even" in str(msgspec.structs.replace(CONFIG, head_dim=7).fault())
    assert weight_shapes(CONFIG)["action_out_proj.weight"] == (7, 16)
