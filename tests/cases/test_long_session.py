"""C60: a conversation that is longer than what is kept of it."""

from __future__ import annotations

import gc
from types import FunctionType, ModuleType

from duologue.duplex_plugins.contract import EndResponse, ResponseRequested
from duologue.engines.payloads import TokenUsage
from duologue.protocol.commands import (
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    UpdateSession,
)
from duologue.protocol.events import ErrorEvent, ItemAdded, ItemDeleted
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.response_events import ResponseDone
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.settings import SessionSettings
from tests.cases.talk import READS, Talk, speech

ROOM = 20


def shown(talk: Talk) -> list[str]:
    """The conversation as a client has it that believes every event."""
    items: list[str] = []
    for event in talk.client.events:
        match event:
            case ItemAdded(previous_item_id=previous, item=item):
                at = 0 if previous is None else items.index(previous) + 1
                items.insert(at, item.id)
            case ItemDeleted(item_id=item_id):
                items.remove(item_id)
            case _:
                pass
    return items


def held_by(talk: Talk) -> int:
    """How many objects the session keeps, without what is around it in a test."""
    around = (talk, talk.client, talk.engine, talk.plugin, talk.clock, talk.wheel, talk.metrics)
    seen = {id(each) for each in (*around, talk.manager, talk.session, talk.flights)}
    waiting: list[object] = [talk.machine]
    count = 0
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type | ModuleType | FunctionType | str | int):
            continue
        seen.add(id(each))
        count += 1
        waiting += gc.get_referents(each)
    return count


def test_c60_two_hundred_turns_with_room_for_twenty_items() -> None:
    talk = Talk(capabilities=READS, settings=SessionSettings(max_items=ROOM, max_duration_s=20_000))
    talk.send(UpdateSession(session=SessionPatch(instructions="Be brief.")))
    began_s, held = talk.clock.now(), []
    for number in range(200):
        held.append(held_by(talk))
        talk.send(speech(120), CommitAudio())
        talk.transcribe(f"question {number}")
        talk.send(CreateResponse())
        talk.answer(f"answer {number}", 200)
        talk.finish()
        talk.clock.advance(72)
    assert talk.clock.now() - began_s >= 4 * 3600
    # What is kept when there is no more room is all that is ever kept.
    assert max(held[-50:]) <= max(held[50:100]), held
    assert talk.done() == [("completed", None)] * 200
    assert talk.client.of(ErrorEvent) == []
    for request in talk.plugin.of(ResponseRequested):
        assert request.config.instructions == "Be brief."
        assert len(request.conversation) <= ROOM
        assert all(item.text is not None for item in request.conversation)
    last = talk.plugin.prompts[-1]
    assert last[-3:] == [
        ("user", "question 198"),
        ("assistant", "answer 198"),
        ("user", "question 199"),
    ]
    assert len(talk.machine.history) == ROOM
    # A client that follows the events has the same conversation.
    assert shown(talk) == [view.id for view in talk.machine.history.view()]
    first, newest = shown(talk)[0], shown(talk)[-1]
    gone = talk.client.of(ItemAdded)[0].item.id
    talk.send(DeleteItem(event_id="e1", item_id=gone))
    assert talk.client.error().error.code == "item_delete_invalid_item_id"
    talk.send(DeleteItem(item_id=first), DeleteItem(item_id=newest))
    assert len(talk.machine.history) == ROOM - 2
    talk.probe()
    talk.close()


def test_c60_a_client_that_fills_the_conversation_itself_is_told_and_calls_go_on() -> None:
    talk = Talk(settings=SessionSettings(max_items=ROOM))
    item = MessageItem(role="user", content=(InputText(text="a"),))
    talk.send(*[CreateItem(item=item)] * ROOM, CreateItem(event_id="e1", item=item))
    error = talk.client.error().error
    assert (error.code, error.event_id) == ("conversation_full", "e1")
    talk.probe()
    assert shown(talk) == [view.id for view in talk.machine.history.view()]
    talk.close()


def test_c60_what_an_answer_cost_is_reported_with_it() -> None:
    talk = Talk()
    talk.send(CreateResponse())
    usage = TokenUsage(1200, 7, 1000)
    talk.plugin.then(EndResponse(talk.created()[-1], usage=usage))
    talk.send(UpdateSession(session=SessionPatch()))
    reported = talk.client.last(ResponseDone).response.usage
    assert reported is not None
    assert (reported.input_tokens, reported.output_tokens) == (1200, 7)
    assert reported.input_token_details.cached_tokens == 1000
    talk.close()
