from __future__ import annotations

from duologue.duplex_plugins.contract import Capabilities, PluginConfig
from duologue.duplex_plugins.persona import ANYBODY, AS_IT_LIKES, Draws, Persona


def test_unless_it_says_otherwise_a_model_becomes_who_it_is_told_to_be_at_any_time() -> None:
    assert Capabilities().persona == ANYBODY == Persona(reads_instructions=True, stays=False)
    assert not ANYBODY.sampling


def test_who_is_told_nothing_draws_as_it_likes() -> None:
    assert PluginConfig().draws == AS_IT_LIKES == Draws(top_k=None, seed=None)
