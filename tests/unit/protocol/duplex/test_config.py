from __future__ import annotations

from duologue.protocol.duplex.config import DuplexConfig


def test_unasked_the_server_finds_turns_and_answers_them() -> None:
    config = DuplexConfig()
    assert config.turns_left_to_server
    assert config.auto_response
    assert config.playback_commit_policy == "commit_all_on_done"
