from __future__ import annotations

from duologue.clients.errors import CallEnded, CommandRefused
from duologue.protocol.events import ErrorBody


def test_a_refusal_repeats_the_servers_words_and_names_the_field() -> None:
    body = ErrorBody(
        type="invalid_request_error", code="invalid_value", message="too loud", param="session.x"
    )
    error = CommandRefused(body)
    assert error.message == "the server refused: too loud (session.x)"
    assert error.code == "invalid_value"
    assert error.body is body


def test_a_refusal_without_a_code_has_one_all_the_same() -> None:
    body = ErrorBody(type="server_error", message="no")
    assert CommandRefused(body).code == "call_failed"


def test_hanging_up_is_a_normal_end_and_everything_else_is_not() -> None:
    assert CallEnded("over").is_normal
    assert not CallEnded("over", close_code=1013).is_normal
