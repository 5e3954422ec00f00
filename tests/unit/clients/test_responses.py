from __future__ import annotations

import asyncio

import msgspec
import pytest

from duologue.clients import responses as module
from duologue.clients.errors import CallEnded, ConnectionLost, EventsMissed
from duologue.clients.responses import MAX_WAITING, Response, Responses, ResponseStream
from duologue.clients.track import TrackAudio, TrackDone
from duologue.protocol.audio_formats import PcmFormat, PcmuFormat
from duologue.protocol.items import FunctionCallItem
from duologue.protocol.response_events import OutputItemDone, OutputTextDelta, ResponseDone
from duologue.protocol.response_resource import (
    ResponseFailure,
    ResponseStatus,
    StatusDetails,
)
from tests.fakes.server import FakeAnswer, speech_started

RATE_HZ = 24_000


def told(responses: Responses, *events: object) -> None:
    for event in events:
        responses.put(event)  # type: ignore[arg-type]


def begun(answer: FakeAnswer) -> tuple[Responses, Response]:
    responses = Responses(RATE_HZ)
    stream = responses.open()
    told(responses, answer.created())
    return responses, stream._waiting[0]


async def test_an_answer_grows_and_ends() -> None:
    answer = FakeAnswer("a")
    responses, response = begun(answer)
    assert (response.status, response.done, response.text) == ("in_progress", False, "")
    call = FunctionCallItem(name="look", call_id="c1", arguments="{}")
    cut = FunctionCallItem(name="go", call_id="c2", status="incomplete")
    told(
        responses,
        answer.item_added(),
        answer.text("one "),
        answer.audio(100),
        answer.text("two"),
        speech_started("q"),
        OutputItemDone(response_id=answer.response_id, output_index=1, item=call),
        OutputItemDone(response_id=answer.response_id, output_index=2, item=cut),
        answer.audio_done(),
        answer.done(),
        answer.audio(100),
    )
    assert await response.finished() is response
    assert response.text == "one two"
    assert len(response.audio) == response.audio_bytes == 2 * 2400
    assert response.calls == [call]
    assert response.item_ids == ["item_a"]
    assert response.status == "completed"
    assert "resp_a completed 'one two'" in repr(response)


async def test_audio_is_handed_out_as_it_comes_to_each_who_wants_it() -> None:
    answer = FakeAnswer("a")
    responses, response = begun(answer)
    told(responses, answer.audio(20))

    async def listen() -> list[int]:
        return [len(chunk) async for chunk in response.chunks()]

    async with asyncio.TaskGroup() as group:
        first, second = group.create_task(listen()), group.create_task(listen())
        await asyncio.sleep(0)
        told(responses, answer.audio(40))
        await asyncio.sleep(0)
        told(responses, answer.audio(20), answer.done())
    assert sum(first.result()) == sum(second.result()) == 80 * 48
    assert first.result()[0] == 20 * 48


async def test_written_answers_have_text_and_other_formats_become_pcm() -> None:
    answer = FakeAnswer("a", PcmuFormat())
    responses, response = begun(answer)
    text = OutputTextDelta(
        response_id=answer.response_id, item_id="i", output_index=0, content_index=0, delta="yes"
    )
    told(responses, text, answer.audio(10, b"\xff"), answer.done())
    assert response.text == "yes"
    assert len(response.audio) == pytest.approx(240 * 3 * 2, abs=200)  # 8 kHz


async def test_on_a_track_an_answer_is_whole_when_its_sound_has_ended() -> None:
    answer, silent = FakeAnswer("a"), FakeAnswer("b")
    responses = Responses(RATE_HZ, server_plays=True)
    stream = responses.open()
    told(responses, answer.created(), answer.text("hello"), answer.done())
    response = await anext(stream)
    assert (response.status, response.done) == ("completed", False)
    told(
        responses,
        TrackAudio(response_id=answer.response_id, item_id=answer.item_id, pcm=bytes(960)),
        TrackDone(response_id=answer.response_id, item_id=answer.item_id),
    )
    assert len((await response.finished()).audio) == 960
    told(responses, silent.created(), silent.done())
    assert (await anext(stream)).done
    cut = FakeAnswer("c")
    told(responses, cut.created(), cut.text("hello"), cut.done("cancelled"))
    assert (await anext(stream)).done
    assert responses._going_on == {}


async def test_the_first_reader_starts_at_the_beginning_and_others_now() -> None:
    old, new = FakeAnswer("old"), FakeAnswer("new")
    past = [FakeAnswer("lost").text("x"), old.created(), old.text("hello")]
    responses = Responses(RATE_HZ, past)
    first, second = responses.open(), responses.open()
    told(responses, old.done(), new.created(), new.done("cancelled"))
    responses.end(None)
    assert [(each.id, each.text) async for each in first] == [
        ("resp_old", "hello"),
        ("resp_new", ""),
    ]
    assert [each.status async for each in second] == ["cancelled"]
    assert [each async for each in responses.from_now()] == []


async def test_an_answer_goes_on_when_its_reader_is_gone() -> None:
    answer = FakeAnswer("a")
    responses, response = begun(answer)
    assert len(responses._streams) == 0
    told(responses, answer.text("on"), answer.done())
    assert (await response.finished()).text == "on"


async def test_the_end_of_the_call_ends_the_answers_that_go_on() -> None:
    for error, kind in ((None, CallEnded), (ConnectionLost("broken"), ConnectionLost)):
        responses, response = begun(FakeAnswer("a"))
        stream = responses.from_now()
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(raised(response))
            await asyncio.sleep(0)
            responses.end(error)
        assert waiting.result() is kind
        if error is not None:
            with pytest.raises(ConnectionLost):
                await anext(stream)


async def raised(response: Response) -> type[Exception]:
    try:
        await response.finished()
    except (CallEnded, ConnectionLost) as exc:
        return type(exc)
    raise AssertionError("it finished")


async def test_a_reader_that_is_too_far_behind_is_told() -> None:
    responses = Responses(RATE_HZ)
    stream = responses.open()
    for number in range(MAX_WAITING + 3):
        answer = FakeAnswer(str(number))
        told(responses, answer.created(), answer.done())
    for _ in range(MAX_WAITING):
        await anext(stream)
    with pytest.raises(EventsMissed, match="3 answers"):
        await anext(stream)
    told(responses, FakeAnswer("next").created())
    assert (await anext(stream)).id == "resp_next"


async def test_an_answer_that_is_too_long_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_AUDIO_BYTES", 4800)
    answer = FakeAnswer("a")
    responses, response = begun(answer)
    told(responses, answer.audio(100), answer.audio(1), answer.done())
    with pytest.raises(EventsMissed, match="4800"):
        await response.finished()
    with pytest.raises(EventsMissed):
        assert [len(chunk) async for chunk in response.chunks()] == []


async def test_answers_that_a_server_never_ends_are_forgotten_and_their_readers_told() -> None:
    responses = Responses(RATE_HZ)
    stream = responses.open()
    told(responses, FakeAnswer("first").created())
    first = await anext(stream)
    for number in range(MAX_WAITING):
        told(responses, FakeAnswer(str(number)).created())
    with pytest.raises(CallEnded, match="not ended this answer"):
        await first.finished()


async def test_a_stream_waits_for_the_next_answer() -> None:
    stream = ResponseStream()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(anext(stream))
        await asyncio.sleep(0)
        stream.put(Response(FakeAnswer("a", PcmFormat()).resource("in_progress"), RATE_HZ))
    assert waiting.result().id == "resp_a"


def test_an_answer_that_failed_says_why() -> None:
    answer = FakeAnswer("a")
    responses, response = begun(answer)
    assert response.error is None
    why = ResponseFailure(type="server_error", code="upstream_unreachable", message="no model")
    resource = msgspec.structs.replace(
        answer.resource("failed"), status_details=StatusDetails(type="failed", error=why)
    )
    told(responses, ResponseDone(response=resource))
    assert (response.status, response.error) == ("failed", why)


@pytest.mark.parametrize("status", ["completed", "cancelled", "incomplete", "failed"])
def test_only_a_failure_has_an_error_and_always_one(status: ResponseStatus) -> None:
    answer = FakeAnswer("a")
    responses, response = begun(answer)
    told(responses, answer.done(status))
    code = None if response.error is None else response.error.code
    assert code == ("response_failed" if status == "failed" else None)
