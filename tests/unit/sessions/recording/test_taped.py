"""A machine that records what is done with it."""

from __future__ import annotations

import inspect

import pytest

from duologue.core.errors import PluginError
from duologue.duplex_plugins.contract import CallFunction
from duologue.protocol.commands import CommitAudio, CreateResponse
from duologue.sessions.machine import SessionMachine
from duologue.sessions.recording.taped import TapedMachine
from tests.fakes.call import FakeCall
from tests.fakes.plugin import FakePlugin
from tests.fakes.taped_call import SECRETS, MemoryTape, interrupted_call

READS_ONLY = {"next_deadline", "resource"}
"""Methods of the machine after which it is as before."""

ONLY_TELLS = {"heard_by", "kept_by"}
"""Those that say who else is told something, on which nothing that comes out depends."""


def test_every_method_that_changes_a_machine_is_recorded() -> None:
    changes = {
        name
        for name, _ in inspect.getmembers(SessionMachine, inspect.isfunction)
        if not name.startswith("_") and name not in READS_ONLY | ONLY_TELLS
    }
    recorded = {name for name in vars(TapedMachine) if not name.startswith("_")}
    assert recorded == changes


def test_without_content_nothing_that_was_said_is_in_it() -> None:
    memory = MemoryTape(content=False)
    interrupted_call(memory)
    for secret in SECRETS:
        assert secret.encode() not in memory.data
    assert b"$bytes" not in memory.data


def test_with_content_it_is() -> None:
    memory = MemoryTape(content=True)
    interrupted_call(memory)
    for secret in SECRETS:
        assert secret.encode() in memory.data


def test_a_call_is_the_same_with_and_without_a_recording() -> None:
    taped = interrupted_call(MemoryTape(content=True))
    plain = interrupted_call(None)
    assert type(plain.machine) is SessionMachine
    assert taped.client.events == plain.client.events
    assert taped.client.ended == plain.client.ended


@pytest.mark.parametrize("content", [True, False])
def test_a_crash_is_the_last_step(content: bool) -> None:
    memory = MemoryTape(content=content)
    plugin = FakePlugin(answers=False)
    call = FakeCall(plugin, tape=memory.tape)
    plugin.then(CallFunction("r", "c", "unknown_function", "{}", done=True))
    call.send(CreateResponse())
    call.send(CommitAudio())
    steps = memory.recording().steps
    raised = [step for step in steps if step.raised]
    assert [step.raised for step in raised] == [PluginError.__name__]
    assert "crash" in [step.call for step in steps]


@pytest.mark.parametrize("answers", [0, 1, 2])
def test_the_end_is_in_the_recording_whatever_still_ran(answers: int) -> None:
    memory = MemoryTape(content=False)
    call = FakeCall(FakePlugin(), tape=memory.tape)
    if answers:
        call.send(CreateResponse())
    if answers > 1:
        call.say(2)
    call.session.close("client_gone")
    assert "close" in [step.call for step in memory.recording().steps]
