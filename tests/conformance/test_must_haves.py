"""What stock clients rely on: one call is recorded, and each promise is looked up in the record.

Each breaks at least one client where it is not kept: events are dropped in silence, a receive loop
ends for good, or a process crashes.
"""

from __future__ import annotations

import re
from asyncio import Runner
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvloop

from tests.conformance.official_caller import Event, Record
from tests.conformance.recorded_call import SESSION, hold_call
from tests.conformance.sdk_schema import GA
from tests.conformance.talking_gateway import talking_settings

BETA_EVENTS = re.compile(r"response\.(audio|text|audio_transcript)\.|conversation\.item\.created")
SMALLEST_CLIENT_LIMIT_BYTES = 1 << 20
DELTAS = (
    "response.output_audio.delta",
    "response.output_audio_transcript.delta",
    "response.output_text.delta",
)

PART_ENDS = (
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.output_text.done",
)

Check = Callable[[Record], None]
CHECKS: list[tuple[str, Check]] = []


def promise(row: str) -> Callable[[Check], Check]:
    """Enter a check under its number in the list of what clients need."""

    def enter(check: Check) -> Check:
        CHECKS.append((f"{row}-{check.__name__}", check))
        return check

    return enter


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Record]:
    """Hold the call, once for all checks."""
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        with Runner(loop_factory=uvloop.new_event_loop) as runner:
            yield runner.run(hold_call(talking_settings(folder)))


def sessions(record: Record) -> list[dict[str, Any]]:
    return [event["session"] for event in record.of("session.created", "session.updated")]


def responses(record: Record) -> list[dict[str, Any]]:
    return [event["response"] for event in record.of("response.created", "response.done")]


def items(record: Record) -> list[dict[str, Any]]:
    found = [event["item"] for event in record.came if "item" in event]
    return found + [item for response in responses(record) for item in response["output"]]


def error(record: Record, event_id: str) -> Event:
    """The one error that answers an event."""
    (found,) = [
        event["error"] for event in record.of("error") if event["error"]["event_id"] == event_id
    ]
    return found


@promise("0")
def every_event_is_as_the_sdk_declares_it_and_has_no_keys_besides(record: Record) -> None:
    for line in record.lines:
        if line.direction == "came":
            GA.check(line.raw)


@promise("1")
def every_event_has_an_id_of_its_own(record: Record) -> None:
    ids = [event["event_id"] for event in record.came]
    assert all(isinstance(each, str) and each for each in ids)
    assert len(ids) == len(set(ids))


@promise("2")
def the_session_is_created_before_the_client_has_said_anything(record: Record) -> None:
    first = record.lines[0]
    assert (first.direction, first.type) == ("came", "session.created")


@promise("3")
def each_update_is_answered_by_the_whole_session(record: Record) -> None:
    assert len(record.of("session.updated")) == len(record.sent("session.update"))
    for session in sessions(record):
        assert {"instructions", "output_modalities", "audio", "tools", "tool_choice"} <= set(
            session
        )
        assert "turn_detection" in session["audio"]["input"]
        assert "format" in session["audio"]["output"]


@promise("4")
def a_part_of_a_session_changes_that_part_alone(record: Record) -> None:
    _, all_set, tracing, cleared, vad = sessions(record)
    assert all_set["instructions"] == SESSION["instructions"]
    assert all_set["audio"]["output"]["voice"] == "two"
    assert [tool["name"] for tool in all_set["tools"]] == ["look_up"]
    assert tracing["instructions"] == all_set["instructions"]
    assert tracing["tools"] == all_set["tools"]
    assert tracing["audio"] == all_set["audio"]
    assert (tracing["tracing"], cleared.get("tracing")) == ("auto", None)
    assert cleared["audio"]["input"]["turn_detection"] is None
    assert cleared["audio"]["input"].get("noise_reduction") is None
    assert cleared["audio"]["input"]["transcription"] == all_set["audio"]["input"]["transcription"]
    assert vad["audio"] == all_set["audio"] | {
        "input": all_set["audio"]["input"]
        | {"noise_reduction": cleared["audio"]["input"].get("noise_reduction")}
    }


@promise("5")
def what_we_do_not_do_is_taken_without_an_error(record: Record) -> None:
    assert [event for event in record.answers_to("all") if event["type"] == "error"] == []


@promise("6")
def pcm_is_at_24_khz_unless_asked_for_otherwise(record: Record) -> None:
    for session in sessions(record):
        for side in ("input", "output"):
            assert session["audio"][side]["format"] == {"type": "audio/pcm", "rate": 24000}


@promise("7")
def turn_detection_is_null_or_one_that_clients_know_with_both_its_switches(record: Record) -> None:
    for session in sessions(record):
        detection = session["audio"]["input"]["turn_detection"]
        if detection is not None:
            assert detection["type"] in ("server_vad", "semantic_vad")
            assert detection["create_response"] is True
            assert detection["interrupt_response"] is True


@promise("8")
def transcription_has_only_the_keys_that_every_client_knows(record: Record) -> None:
    for session in sessions(record):
        transcription = session["audio"]["input"]["transcription"]
        assert set(transcription or {}) <= {"model", "language", "prompt"}


@promise("9")
def choices_are_strings_and_kinds_are_named(record: Record) -> None:
    for session in sessions(record):
        assert isinstance(session["tool_choice"], str)
        assert isinstance(session["audio"]["output"]["voice"], str)
        assert (session["type"], session["object"]) == ("realtime", "realtime.session")


@promise("10")
def every_item_is_added_and_done_and_never_created(record: Record) -> None:
    added = [event["item"]["id"] for event in record.of("conversation.item.added")]
    done = [event["item"]["id"] for event in record.of("conversation.item.done")]
    assert sorted(added) == sorted(done)
    assert len(added) == len(set(added))
    assert {"item_livekit_2", "a" * 32, "item_first", "item_call", "item_result"} <= set(added)
    committed = {event["item_id"] for event in record.of("input_audio_buffer.committed")}
    answered = {event["item"]["id"] for event in record.of("response.output_item.added")}
    assert committed | answered <= set(added)


@promise("11")
def speech_of_the_person_has_a_transcript_even_before_it_is_known(record: Record) -> None:
    parts = [part for item in items(record) for part in item.get("content", ())]
    spoken = [part for part in parts if part["type"] == "input_audio"]
    assert len(spoken) >= 2 * len(record.of("input_audio_buffer.committed")) > 0
    assert all("transcript" in part for part in spoken)
    assert any(part["transcript"] is None for part in spoken)


@promise("12")
def items_stand_where_the_client_puts_them_under_its_own_ids(record: Record) -> None:
    place = {
        event["item"]["id"]: event["previous_item_id"]
        for event in record.of("conversation.item.added")
    }
    assert place["item_livekit_2"] is None
    assert place["a" * 32] == "item_livekit_2"
    assert place["item_first"] is None
    assert place["item_between"] == "item_first"
    assert error(record, "nowhere")["code"] == "item_create_invalid_previous_item_id"
    assert "item_nowhere" not in place


@promise("12b")
def the_previous_item_is_the_one_before_it_in_the_conversation(record: Record) -> None:
    order: list[str] = []
    for event in record.came:
        kind = event["type"]
        if kind in ("conversation.item.added", "conversation.item.done"):
            item_id, previous = event["item"]["id"], event["previous_item_id"]
            if kind == "conversation.item.added":
                order.insert(0 if previous is None else order.index(previous) + 1, item_id)
            at = order.index(item_id)
            assert previous == (order[at - 1] if at else None)
        elif kind == "conversation.item.deleted":
            order.remove(event["item_id"])
        elif kind == "input_audio_buffer.committed":
            assert event["previous_item_id"] == order[-1]


@promise("13")
def the_events_of_a_response_come_in_the_order_that_clients_need(record: Record) -> None:
    spoken = [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "conversation.item.done",
        "response.output_item.done",
        "response.done",
        "rate_limits.updated",
    ]
    for response in record.of("response.done"):
        output = response["response"]["output"][0]
        if output["type"] == "function_call":
            continue
        of_it = [
            event["type"]
            for event in record.came
            if event.get("response_id") == response["response"]["id"]
            or event.get("response", {}).get("id") == response["response"]["id"]
            or event.get("item", {}).get("id") == output["id"]
            or event["type"] == "rate_limits.updated"
        ]
        start = of_it.index("response.created")
        # What is said comes behind the part that it belongs to, and before the part's end.
        deltas = [n for n, kind in enumerate(of_it) if kind in DELTAS]
        assert of_it.index("response.content_part.added") < deltas[0]
        ends = [n for n, kind in enumerate(of_it) if kind in PART_ENDS]
        assert deltas[-1] < min(ends)
        skeleton = [kind for kind in of_it[start:] if kind not in DELTAS][: len(spoken)]
        if "response.output_text.done" in skeleton:
            written = [kind for kind in spoken if "transcript" not in kind]
            written[written.index("response.output_audio.done")] = "response.output_text.done"
            assert skeleton[: len(written)] == written
        else:
            assert skeleton == spoken


@promise("14")
def deltas_say_whose_they_are(record: Record) -> None:
    for event in record.of(*DELTAS):
        for key in ("response_id", "item_id", "delta"):
            assert isinstance(event[key], str), event
        for key in ("output_index", "content_index"):
            assert type(event[key]) is int, event
    for event in record.of("response.function_call_arguments.delta"):
        for key in ("response_id", "item_id", "call_id", "delta"):
            assert isinstance(event[key], str), event
        assert type(event["output_index"]) is int
    for event in record.of("input_audio_buffer.speech_started"):
        assert type(event["audio_start_ms"]) is int
    for event in record.of("input_audio_buffer.speech_stopped"):
        assert type(event["audio_end_ms"]) is int


@promise("15")
def parts_and_contents_have_their_own_names(record: Record) -> None:
    for event in record.of("response.content_part.added", "response.content_part.done"):
        assert event["part"]["type"] in ("audio", "text")
    for event in record.of("response.output_item.done"):
        for content in event["item"].get("content", ()):
            assert content["type"] in ("output_audio", "output_text")


@promise("16")
def statuses_are_those_that_clients_know(record: Record) -> None:
    for item in items(record):
        assert item["status"] in ("in_progress", "completed", "incomplete")
    for response in responses(record):
        assert response["status"] in ("in_progress", "completed", "cancelled")
        assert response["status_details"] is None or isinstance(response["status_details"], dict)
    (cut,) = [each for each in responses(record) if each["status"] == "cancelled"]
    assert cut["status_details"] == {"type": "cancelled", "reason": "turn_detected"}


@promise("17")
def metadata_of_a_request_come_back_with_its_response(record: Record) -> None:
    kept = [each["metadata"] for each in responses(record) if each.get("metadata")]
    assert kept == [{"client_event_id": "create_1"}] * 2


@promise("18")
def a_function_call_has_all_that_clients_run_it_by(record: Record) -> None:
    (created,) = record.answers_to("create_5")[:1]
    response_id = created["response"]["id"]
    of_it = [
        event
        for event in record.came
        if response_id in (event.get("response_id"), event.get("response", {}).get("id"))
        or (
            event.get("item", {}).get("type") == "function_call"
            and event["item"]["call_id"] != "call_1"
        )
    ]
    kinds = [event["type"] for event in of_it]
    assert [kind for kind in kinds if not kind.endswith(".delta")] == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.function_call_arguments.done",
        "conversation.item.done",
        "response.output_item.done",
        "response.done",
    ]
    (added,) = [event["item"] for event in of_it if event["type"] == "conversation.item.added"]
    assert (added["name"], added["arguments"], added["status"]) == ("look_up", "", "in_progress")
    assert 0 < len(added["call_id"]) <= 32
    (done,) = record.of("response.function_call_arguments.done")
    assert (done["name"], done["call_id"]) == ("look_up", added["call_id"])
    deltas = record.of("response.function_call_arguments.delta")
    assert "".join(event["delta"] for event in deltas) == done["arguments"] == '{"what":"x"}'
    (item,) = of_it[-1]["response"]["output"]
    (ended,) = [event["item"] for event in of_it if event["type"] == "response.output_item.done"]
    for each in (item, ended):
        assert (each["status"], each["arguments"]) == ("completed", done["arguments"])
        assert (each["name"], each["call_id"]) == ("look_up", added["call_id"])
    assert {done["item_id"], ended["id"], item["id"]} == {added["id"]}
    assert of_it[-1]["response"]["status"] == "completed"


@promise("18")
def a_second_output_for_a_call_is_an_error(record: Record) -> None:
    assert error(record, "found_again")["code"] == "tool_call_already_answered"


@promise("19")
def the_result_of_a_tool_starts_no_response(record: Record) -> None:
    for event_id in ("result", "found"):
        kinds = [event["type"] for event in record.answers_to(event_id)]
        assert kinds == ["conversation.item.added", "conversation.item.done"]


@promise("20")
def each_request_leads_to_one_response_or_to_an_error_with_its_id(record: Record) -> None:
    created = [event["response"]["id"] for event in record.of("response.created")]
    done = [event["response"]["id"] for event in record.of("response.done")]
    assert created == done
    assert error(record, "create_3")["code"] == "conversation_already_has_active_response"
    by_turns = 2
    assert len(created) == len(record.sent("response.create")) - 1 + by_turns


@promise("21")
def transcripts_say_what_they_cost(record: Record) -> None:
    completed = record.of("conversation.item.input_audio_transcription.completed")
    assert [each["transcript"] for each in completed] == ["hello again", "long", "hello again"]
    for event in completed:
        assert type(event["content_index"]) is int
        assert event["usage"]["type"] == "duration"
        assert event["usage"]["seconds"] > 0
    for event in record.of("conversation.item.input_audio_transcription.delta"):
        assert type(event["content_index"]) is int


@promise("22")
def items_can_be_looked_at(record: Record) -> None:
    (event,) = record.answers_to("retrieve")
    assert event["item"]["id"] == "item_first"
    assert error(record, "retrieve_none")["code"] == "item_retrieve_invalid_item_id"


@promise("23")
def a_cut_never_fails_and_is_answered_with_the_value_of_the_client(record: Record) -> None:
    cuts = [event["audio_end_ms"] for event in record.of("conversation.item.truncated")]
    assert cuts[-3:] == [600, 10**9, 0]
    asked = [(e["item_id"], e["content_index"]) for e in record.sent("conversation.item.truncate")]
    answered = record.of("conversation.item.truncated")[-3:]
    assert [(event["item_id"], event["content_index"]) for event in answered] == asked
    assert [e["error"] for e in record.of("error") if "cut" in (e["error"]["event_id"] or "")] == []
    (event,) = record.answers_to("retrieve_cut")
    assert event["item"]["content"][0]["transcript"] == ""


@promise("24")
def what_cannot_be_done_now_has_the_codes_that_clients_pass_over(record: Record) -> None:
    cancel = error(record, "cancel_nothing")
    assert cancel["code"] == "response_cancel_not_active"
    assert cancel["message"].startswith("Cancellation failed")
    assert error(record, "commit_nothing")["code"] == "input_audio_buffer_commit_empty"
    assert error(record, "twin")["code"] == "item_create_duplicate_item_id"


@promise("25")
def errors_have_all_their_keys(record: Record) -> None:
    for event in record.of("error"):
        assert set(event["error"]) == {"type", "code", "message", "param", "event_id"}
        assert event["error"]["type"] == "invalid_request_error"
        assert event["error"]["message"]


@promise("26")
def there_are_no_events_of_our_own(record: Record) -> None:
    assert {event["type"] for event in record.came} <= set(GA.kinds)


@promise("27")
def there_are_no_names_of_the_beta(record: Record) -> None:
    assert [e["type"] for e in record.came if BETA_EVENTS.match(e["type"])] == []


@promise("28")
def an_interruption_stops_the_answer_before_the_turn_is_over(record: Record) -> None:
    kinds = [event["type"] for event in record.came]
    (cut,) = [e for e in record.of("response.done") if e["response"]["status"] == "cancelled"]
    at = record.came.index(cut)
    started = max(n for n in range(at) if kinds[n] == "input_audio_buffer.speech_started")
    between = [kind for kind in kinds[started + 1 : at] if kind not in DELTAS]
    assert between == [
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "conversation.item.done",
        "response.output_item.done",
    ]
    assert not any(kind in DELTAS for kind in kinds[started + 1 : at])
    stopped = kinds.index("input_audio_buffer.speech_stopped", started)
    assert stopped > at


@promise("31")
def messages_are_smaller_than_the_smallest_limit_of_a_client(record: Record) -> None:
    largest = max(len(line.raw) for line in record.lines)
    assert largest < SMALLEST_CLIENT_LIMIT_BYTES / 16


@pytest.mark.parametrize("check", [check for _, check in CHECKS], ids=[name for name, _ in CHECKS])
def test_the_promise_is_kept(check: Check, record: Record) -> None:
    check(record)


def test_the_checks_are_run() -> None:
    assert len(CHECKS) == len({name for name, _ in CHECKS}) > 25
