from __future__ import annotations

from typing import Any, get_args

import pytest

from duologue.protocol.commands import Command, RealtimeCommand
from duologue.protocol.duplex.commands import DuplexCommand


@pytest.mark.parametrize("command", get_args(DuplexCommand))
def test_every_command_may_carry_an_event_id_and_cannot_be_changed(command: Any) -> None:
    assert "event_id" in command.__struct_fields__
    assert command.__struct_config__.frozen


def test_a_session_takes_the_commands_of_both() -> None:
    assert set(get_args(Command)) == {*get_args(RealtimeCommand), *get_args(DuplexCommand)}
