"""A recorded call, done again."""

from __future__ import annotations

import ast

import msgspec
import pytest

from duologue.duplex_plugins.contract import Capabilities
from duologue.engines.payloads import AudioChunk
from duologue.protocol.commands import CreateResponse
from duologue.protocol.duplex.commands import BargeIn
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.sessions.recording.recording import Recording
from duologue.sessions.recording.rerun import MAX_SHOWN, rerun
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin
from tests.fakes.taped_call import MemoryTape, interrupted_call, plugin


def recorded(*, content: bool) -> Recording:
    memory = MemoryTape(content=content)
    interrupted_call(memory)
    return memory.recording()


@pytest.mark.parametrize("content", [True, False])
def test_the_same_inputs_lead_to_the_same_call(content: bool) -> None:
    recording = recorded(content=content)
    again = rerun(recording, plugin())
    assert (again.steps, again.different) == (len(recording.steps), 0)


def test_a_call_that_lost_its_connection_is_done_again_and_no_token_is_in_it() -> None:
    memory = MemoryTape(content=True)
    engine = FakeEngine(pipelines=(STAGE,))
    call = FakeCall(FakePlugin(), engine, patch=DuplexPatch(), tape=memory.tape, resumable=True)
    call.send(CreateResponse())
    stage = engine.of(STAGE)[0].request.id
    call.client.broken = True
    engine.output(stage, AudioChunk(b"\x01\x00" * 48_000, 24_000))
    call.clock.advance(0.5)
    call.lose()
    call.clock.advance(5)
    tokens = [call.client.token]
    call.resume()
    tokens.append(call.client.token)
    call.clock.advance(3)
    call.session.close("closed")
    recording = memory.recording()
    assert {"outlive", "detach", "reattach"} <= {step.call for step in recording.steps}
    again = rerun(recording, FakePlugin())
    assert (again.steps, again.differences) == (len(recording.steps), [])
    assert all(token.encode() not in memory.data for token in tokens)


def test_a_step_that_was_changed_is_found_with_its_place() -> None:
    recording = recorded(content=True)
    number = next(
        n for n, step in enumerate(recording.steps) if "SpeechStarted" in str(step.result)
    )
    steps = list(recording.steps)
    steps[number] = msgspec.structs.replace(steps[number], result=[{"$list": []}, []])
    again = rerun(Recording(recording.header, steps), plugin())
    assert again.different == 1
    (found,) = again.differences
    assert found.number == number
    assert found.recorded == "nothing"
    assert "SpeechStarted" in found.again
    assert found.at_s == pytest.approx(steps[number].now - 100.0)


def test_another_policy_leads_elsewhere_and_what_is_shown_is_bounded() -> None:
    recording = recorded(content=False)
    again = rerun(recording, FakePlugin(Capabilities(speaks=False), answers=False))
    assert again.different > MAX_SHOWN
    assert len(again.differences) == MAX_SHOWN


def test_a_step_of_a_later_version_is_a_difference_and_no_crash() -> None:
    recording = recorded(content=False)
    steps = [*recording.steps, msgspec.structs.replace(recording.steps[-1], call="levitate")]
    (found,) = rerun(Recording(recording.header, steps), plugin()).differences
    assert found.again == "unknown step levitate"


@pytest.mark.parametrize("content", [True, False])
def test_a_call_that_was_resumed_comes_out_the_same_and_its_token_is_in_no_recording(
    content: bool,
) -> None:
    memory = MemoryTape(content=content)
    engine = FakeEngine(pipelines=("vad", "end_of_turn", "asr", STAGE))
    call = FakeCall(FakePlugin(), engine, patch=DuplexPatch(), resumable=True, tape=memory.tape)
    call.send(CreateResponse())
    request = engine.of(STAGE)[-1].request.id
    engine.output(request, AudioChunk(bytes(48_000), 24_000))
    tokens = [call.client.token]
    call.lose()
    call.clock.advance(5)
    call.resume()
    tokens.append(call.client.token)
    call.send(BargeIn())
    engine.output(request, AudioChunk(bytes(48_000), 24_000))
    call.clock.advance(1)
    call.session.close("client_gone")
    recording = memory.recording()
    assert {"outlive", "detach", "reattach"} <= {step.call for step in recording.steps}
    assert rerun(recording, FakePlugin()).differences == []
    assert not any(token.encode() in memory.data for token in tokens)


def test_two_results_of_the_same_kinds_are_told_apart_by_the_field_that_differs() -> None:
    recording = recorded(content=True)
    number = next(
        n for n, step in enumerate(recording.steps) if "SpeechStarted" in str(step.result)
    )
    packed = str(recording.steps[number].result).replace(
        "'audio_start_ms': ", "'audio_start_ms': 9"
    )
    steps = list(recording.steps)
    steps[number] = msgspec.structs.replace(steps[number], result=ast.literal_eval(packed))
    (found,) = rerun(Recording(recording.header, steps), plugin()).differences
    assert found.recorded != found.again
    assert "audio_start_ms" in found.again
