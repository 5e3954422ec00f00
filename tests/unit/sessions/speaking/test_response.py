"""The life of one response."""

from __future__ import annotations

from itertools import product

import pytest

from duologue.codecs.encoder import OutputEncoder
from duologue.core.fence import Lane
from duologue.protocol.audio_formats import PcmFormat
from duologue.protocol.commands import ResponseParams
from duologue.protocol.response_config import response_config
from duologue.protocol.session_config import SessionConfig
from duologue.sessions.speaking.output_items import OutputCall
from duologue.sessions.speaking.response import (
    RESPONSE_LIFE,
    Response,
    ResponseInput,
    ResponseState,
)

S, I = ResponseState, ResponseInput  # noqa: E741
ALLOWED = {
    (S.CREATED, I.FIRST_OUTPUT): S.SPEAKING,
    (S.CREATED, I.GENERATED): S.DRAINING,
    (S.CREATED, I.STOPPED): S.ENDED,
    (S.SPEAKING, I.GENERATED): S.DRAINING,
    (S.SPEAKING, I.STOPPED): S.ENDED,
    (S.DRAINING, I.DELIVERED): S.ENDED,
    (S.DRAINING, I.STOPPED): S.ENDED,
}


def make_response(params: ResponseParams | None = None) -> Response:
    config = response_config(SessionConfig(), params or ResponseParams())
    return Response("resp_1", config, 0.0, OutputEncoder(24000, PcmFormat()))


@pytest.mark.parametrize(("state", "happened"), [*product(S, I)])
def test_a_response_moves_as_the_table_says_and_no_other_way(
    state: ResponseState, happened: ResponseInput
) -> None:
    response = make_response()
    response.state = state
    if (state, happened) in ALLOWED:
        response.advance(happened)
        assert response.state is ALLOWED[state, happened]
    else:
        with pytest.raises(KeyError):
            response.advance(happened)


def test_the_end_is_reached_from_everywhere_and_left_for_nowhere() -> None:
    assert {state for state, _ in RESPONSE_LIFE} == set(S) - {S.ENDED}
    assert all((state, I.STOPPED) in RESPONSE_LIFE for state in set(S) - {S.ENDED})


def test_a_response_is_spoken_unless_text_alone_is_wanted() -> None:
    assert make_response().audio
    assert make_response(ResponseParams(output_modalities=("text", "audio"))).audio
    assert not make_response(ResponseParams(output_modalities=("text",))).audio


def test_a_response_belongs_to_the_conversation_unless_it_is_kept_out() -> None:
    assert not make_response().out_of_band
    assert make_response(ResponseParams(conversation="none")).out_of_band


def test_each_response_has_a_lane_and_speech_of_its_own() -> None:
    response, other = make_response(), make_response()
    assert response.lane == Lane("resp_1")
    spoken = response.new_message("a").spoken
    assert spoken is not other.new_message("a").spoken
    assert (spoken.response_id, spoken.rate_hz) == ("resp_1", 24000)


def test_a_later_message_begins_where_the_speech_of_the_response_is() -> None:
    response = make_response()
    first = response.new_message("a")
    first.spoken.text, first.spoken.samples = "One moment.", 2400
    response.items += [first, OutputCall("b", 1, "key", "look", "call_1")]
    second = response.new_message("c")
    assert (second.index, second.text_start, second.sample_start) == (2, 11, 2400)
    second.spoken.text = " Sunny."
    response.items.append(second)
    assert (response.messages, response.calls) == ([first, second], [response.items[1]])
    assert response.heard_text() == "One moment. Sunny."


def test_how_generation_ended_is_noted() -> None:
    response = make_response()
    response.ended_with("incomplete", "max_output_tokens")
    assert (response.status, response.reason) == ("incomplete", "max_output_tokens")
