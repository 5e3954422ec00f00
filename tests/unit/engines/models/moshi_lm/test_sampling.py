from __future__ import annotations

import pytest

from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.prompt import moshi_prompt
from duologue.engines.models.moshi_lm.sampling import Taste, taste_of
from duologue.engines.models.moshi_lm.weights import MoshiWeights
from tests.golden.moshi_lm.stepping import Stepper

pytestmark = pytest.mark.torch

FRAMES = 15


def test_a_call_can_be_repeated_and_is_no_echo_of_another(
    weights: MoshiWeights, config: MoshiConfig
) -> None:
    def call(others: bool) -> dict[int, list[list[int]]]:
        stepper = Stepper(weights, config, streams=2)
        streams = (0, 1) if others else (1,)
        grids = {s: stepper.begin(moshi_prompt(config), s, taste=Taste()) for s in streams}
        said: dict[int, list[list[int]]] = {s: [] for s in streams}
        for _ in range(FRAMES):
            for stream, tokens in stepper.step(
                grids, dict.fromkeys(streams, config.silence), Taste()
            ).items():
                said[stream].append(tokens)
        return said

    together, alone = call(True), call(False)
    assert together[1] == alone[1], "it depends on its own seed only"
    assert together[0] != together[1], "two calls draw from seeds of their own"


def test_warm_draws_differ_from_the_likeliest(weights: MoshiWeights, config: MoshiConfig) -> None:
    warm, cold = (
        Stepper(weights, config).begin(moshi_prompt(config), taste=taste).row(config.silence)
        for taste in (Taste(), Taste(text_top_k=1, code_top_k=1))
    )
    greedy = Stepper(weights, config).begin(moshi_prompt(config)).row(config.silence)
    assert cold == greedy
    assert warm != greedy


def test_a_taste_is_as_the_model_was_made_for_but_for_what_was_asked() -> None:
    assert taste_of(None) == Taste()
    assert taste_of(0.2) == Taste(text_temperature=0.2, code_temperature=0.2)
    assert taste_of(None, 3) == Taste(text_top_k=3, code_top_k=3)
