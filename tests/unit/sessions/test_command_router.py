"""Each command reaches its part, and a mistake is one error."""

from __future__ import annotations

import pytest

from duologue.duplex_plugins.contract import (
    ConfigChanged,
    Interrupted,
    ResponseRequested,
)
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.engines.ports import Outcome
from duologue.protocol.commands import (
    CancelResponse,
    ClearAudio,
    ClearOutputAudio,
    Command,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    ResponseParams,
    RetrieveItem,
    TruncateItem,
    UpdateSession,
)
from duologue.protocol.events import (
    AudioCleared,
    AudioCommitted,
    ItemAdded,
    ItemDeleted,
    ItemRetrieved,
    ItemTruncated,
    SessionUpdated,
)
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.response_events import ResponseCreated
from duologue.protocol.session_patch import AudioOutputPatch, AudioPatch, SessionPatch
from tests.unit.sessions.machine_bench import SPEECH, Bench, error


def test_an_update_is_applied_confirmed_and_told_to_the_plugin() -> None:
    bench = Bench()
    bench.read()
    (updated,) = bench.apply(UpdateSession(session=SessionPatch(instructions="Sing.")))
    assert isinstance(updated, SessionUpdated)
    assert updated.session.instructions == "Sing."
    assert bench.plugin.of(ConfigChanged)[-1].config.instructions == "Sing."


def test_an_update_that_is_wrong_in_part_changes_nothing() -> None:
    bench = Bench()
    bench.read()
    patch = SessionPatch(
        instructions="Sing.", audio=AudioPatch(output=AudioOutputPatch(voice="nobody"))
    )
    body = error(bench.apply(UpdateSession(event_id="e1", session=patch)))
    assert (body.param, body.event_id) == ("session.audio.output.voice", "e1")
    assert bench.machine.config.instructions == ""
    assert len(bench.plugin.of(ConfigChanged)) == 1


def test_a_response_keeps_the_configuration_it_began_with() -> None:
    bench = Bench()
    bench.apply(CreateResponse(), UpdateSession(session=SessionPatch(instructions="Sing.")))
    bench.apply(CancelResponse(), CreateResponse())
    asked = [request.config.instructions for request in bench.plugin.of(ResponseRequested)]
    assert asked == ["", "Sing."]


# Commands


def test_each_command_of_the_conversation_is_answered() -> None:
    bench = Bench()
    bench.read()
    item = MessageItem(id="i", role="user", content=(InputText(text="hello"),))
    added, _ = bench.apply(CreateItem(item=item))
    assert isinstance(added, ItemAdded)
    assert bench.apply(RetrieveItem(item_id="i")) == [ItemRetrieved(item=item)]
    assert bench.apply(DeleteItem(item_id="i")) == [ItemDeleted(item_id="i")]


def test_audio_is_committed_and_answered() -> None:
    bench = Bench()
    bench.read()
    assert bench.apply(SPEECH, ClearAudio()) == [AudioCleared()]
    events = bench.apply(SPEECH, CommitAudio(), CreateResponse())
    assert isinstance(events[0], AudioCommitted)
    assert isinstance(events[-1], ResponseCreated)


def test_the_clients_cut_is_confirmed_and_changes_the_next_prompt() -> None:
    bench = Bench()
    bench.apply(CreateResponse())
    bench.apply(
        bench.output(TextDelta("one two")), bench.output(AudioChunk(b"\x00\x00" * 48000, 24000))
    )
    bench.apply(bench.ended(Outcome.COMPLETED))
    item_id = bench.machine.history.view()[0].id
    (cut,) = bench.apply(TruncateItem(item_id=item_id, audio_end_ms=1200))
    assert cut == ItemTruncated(item_id=item_id, content_index=0, audio_end_ms=1200)
    assert bench.machine.history.view()[0].text == "one"
    assert bench.plugin.of(Interrupted)[-1].heard == "one"


@pytest.mark.parametrize(
    ("command", "code", "param"),
    [
        (CancelResponse(event_id="e1"), "response_cancel_not_active", None),
        (
            CancelResponse(event_id="e1", response_id="x"),
            "response_cancel_not_active",
            "response_id",
        ),
        (CommitAudio(event_id="e1"), "input_audio_buffer_commit_empty", None),
        (ClearOutputAudio(event_id="e1"), "unsupported", None),
        (DeleteItem(event_id="e1", item_id="x"), "item_delete_invalid_item_id", "item_id"),
        (
            TruncateItem(event_id="e1", item_id="x", audio_end_ms=1),
            "item_truncate_invalid_item_id",
            "item_id",
        ),
        (
            CreateResponse(event_id="e1", response=ResponseParams(max_output_tokens=0)),
            "invalid_value",
            "response.max_output_tokens",
        ),
    ],
)
def test_a_mistake_is_one_error_and_nothing_else(
    command: Command, code: str, param: str | None
) -> None:
    bench = Bench()
    bench.read()
    body = error(bench.apply(command))
    assert (body.code, body.param, body.event_id) == (code, param, "e1")
    assert bench.effects == []
    assert bench.machine.ended is None


def test_a_cancel_that_comes_too_late_says_so_in_the_words_that_clients_know() -> None:
    bench = Bench()
    bench.read()
    assert error(bench.apply(CancelResponse())).message.startswith("Cancellation failed")


def test_a_cancel_by_name_stops_that_response() -> None:
    bench = Bench()
    bench.apply(CreateResponse(response=ResponseParams(conversation="none")), CreateResponse())
    beside, active = bench.machine.speaking.all()
    bench.apply(CancelResponse(response_id=beside.id))
    assert bench.machine.speaking.all() == [active]
