"""C01 to C10: beginnings and ends of responses."""

from __future__ import annotations

from duologue.duplex_plugins.contract import ResponseRequested
from duologue.duplex_plugins.scripted import ScriptedPlugin, ScriptedSettings
from duologue.engines.payloads import AudioChunk
from duologue.protocol.commands import CancelResponse, CommitAudio, CreateResponse, ResponseParams
from duologue.protocol.events import ErrorEvent, ItemAdded
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.response_events import AudioDelta, ResponseCreated, ResponseDone
from tests.cases.talk import RATE_HZ, Talk, join, pcm, speech
from tests.fakes.call import FakeCall, FakeConnection
from tests.fakes.engine import FakeEngine


def test_c01_a_second_answer_while_one_is_active_is_refused_by_name() -> None:
    talk = Talk()
    talk.send(CreateResponse(event_id="e1"))
    first = talk.answer("one two", 400)
    talk.send(CreateResponse(event_id="e2"))
    body = talk.client.error().error
    assert (body.code, body.event_id) == ("conversation_already_has_active_response", "e2")
    assert first in body.message
    talk.finish()
    talk.play_to_the_end()
    assert talk.done() == [("completed", None)]
    talk.send(CreateResponse(event_id="e3"))
    talk.finish()
    assert len(talk.created()) == 2
    talk.probe()
    talk.close()


def test_c02_cancel_and_create_in_one_breath_with_an_engine_that_stops_late() -> None:
    talk = Talk()
    talk.send(CreateResponse())
    first = talk.answer("one two", 400)
    old = talk.stage().request.id
    sent = talk.audio_of(first)
    talk.send(CancelResponse(), CreateResponse(event_id="e2"))
    talk.client.wire.interrupted(first)
    for _ in range(5):
        talk.clock.advance(0.16)
        talk.engine.output(old, AudioChunk(pcm(100), RATE_HZ))
    second = talk.answer("three", 300)
    talk.engine.acknowledge_cancel(old)
    talk.finish()
    talk.play_to_the_end()
    kinds = [type(event) for event in talk.client.events]
    assert kinds.index(ResponseDone) < len(kinds) - 1 - kinds[::-1].index(ResponseCreated)
    assert talk.done() == [("cancelled", "client_cancelled"), ("completed", None)]
    assert talk.audio_of(first) == sent
    assert talk.audio_of(second) == pcm(300)
    assert talk.client.of(ErrorEvent) == []
    assert talk.machine.requests.stale_dropped == 5
    talk.close()


def test_c04_a_cancel_with_nothing_active_is_told_so_each_time() -> None:
    talk = Talk()
    talk.send(CancelResponse(event_id="e1"))
    talk.send(CreateResponse())
    talk.answer("one", 200)
    talk.finish()
    talk.clock.advance(0.001)
    talk.send(CancelResponse(event_id="e2"))
    errors = [(e.error.code, e.error.event_id) for e in talk.client.of(ErrorEvent)]
    assert errors == [("response_cancel_not_active", "e1"), ("response_cancel_not_active", "e2")]
    talk.probe()
    talk.close()


def test_c06_an_answer_out_of_band_runs_beside_and_a_cancel_does_not_hit_it() -> None:
    talk = Talk()
    talk.send(CreateResponse())
    first = talk.answer("one two", 400)
    beside = MessageItem(role="user", content=(InputText(text="what is the time?"),))
    params = ResponseParams(conversation="none", input=(beside,))
    talk.send(CreateResponse(response=params))
    assert talk.plugin.prompts[-1] == [("user", "what is the time?")]
    asked = talk.plugin.of(ResponseRequested)
    assert [request.out_of_band for request in asked] == [False, True]
    second = talk.answer("noon", 200)
    talk.send(CancelResponse())
    talk.client.wire.interrupted(first)
    talk.answer(" sharp", 200)
    talk.finish()
    talk.play_to_the_end()
    assert talk.done() == [("cancelled", "client_cancelled"), ("completed", None)]
    assert talk.audio_of(second) == pcm(400)
    (added,) = talk.client.of(ItemAdded)
    assert (len(talk.machine.history), talk.machine.history.last_id) == (1, added.item.id)
    talk.probe()
    talk.close()


def test_c10_a_stage_that_raises_fails_its_answer_and_nobody_elses() -> None:
    def hear(disturb: bool) -> tuple[list[str], bytes]:
        engine = FakeEngine(pipelines=("scripted",))
        call = FakeCall(ScriptedPlugin(ScriptedSettings(lines=("one two",))), engine)
        other = join(call)
        call.send(CreateResponse())
        other.session.offer(CreateResponse())
        mine, theirs = (fake.request.id for fake in engine.of("scripted"))
        for number in range(6):
            engine.output(theirs, AudioChunk(pcm(100), RATE_HZ))
            if mine in engine.running:
                engine.output(mine, AudioChunk(pcm(100), RATE_HZ))
                if disturb and number == 2:
                    engine.fail(mine, "stage_failed", "talker broke")
        engine.complete(theirs)
        call.clock.advance(10)
        if disturb:
            check_failed_but_alive(call)
        return [type(event).__name__ for event in other.events], audio(other)

    assert hear(disturb=True) == hear(disturb=False)


def check_failed_but_alive(call: FakeCall) -> None:
    (done,) = call.client.of(ResponseDone)
    assert done.response.status == "failed"
    assert done.response.status_details is not None
    error = done.response.status_details.error
    assert error is not None
    assert error.code == "stage_failed"
    assert "talker" not in error.message
    call.send(speech(600), CommitAudio(), CreateResponse())
    call.engine.complete(call.engine.of("scripted")[-1].request.id)
    assert call.client.last(ResponseDone).response.status == "completed"


def audio(client: FakeConnection) -> bytes:
    return b"".join(event.delta for event in client.of(AudioDelta))


def test_c01_each_answer_is_asked_of_the_model_once() -> None:
    talk = Talk()
    for number in range(3):
        talk.send(CreateResponse(), CreateResponse())
        talk.finish()
        assert len(talk.plugin.of(ResponseRequested)) == number + 1
