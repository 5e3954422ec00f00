from __future__ import annotations

import json

from duologue.core.errors import AuthError, CapacityError, ClientError, EngineError
from duologue.gateway.errors import error_response
from duologue.protocol.errors import ErrorCode


def test_an_error_has_the_shape_that_clients_read() -> None:
    answer = error_response(ClientError("the value 7 is too odd", param="session.odd"))
    assert answer.status == 400
    assert answer.content_type == "application/json"
    assert json.loads(answer.body) == {
        "error": {
            "type": "invalid_request_error",
            "code": "invalid_request",
            "message": "the value 7 is too odd",
            "param": "session.odd",
            "event_id": None,
        }
    }


def test_a_missing_key_says_how_to_send_one() -> None:
    answer = error_response(AuthError("an API key is required"))
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_page_that_may_not_is_not_asked_for_a_key() -> None:
    answer = error_response(AuthError("no", code=ErrorCode.ORIGIN_NOT_ALLOWED))
    assert answer.status == 403
    assert "WWW-Authenticate" not in answer.headers


def test_a_full_server_says_when_to_come_back() -> None:
    for wait_s, header in ((0.1, "1"), (5.0, "5"), (7.4, "8")):
        answer = error_response(CapacityError("200 of 200", retry_after_s=wait_s))
        assert answer.status == 503
        assert answer.headers["Retry-After"] == header


def test_what_went_wrong_inside_is_not_told() -> None:
    answer = error_response(EngineError("/secret/path: no such file"))
    assert answer.status == 500
    assert b"secret" not in answer.body


def test_what_is_quoted_of_a_client_may_be_no_text() -> None:
    answer = error_response(ClientError("there is no \udcff", param="a\ud800"))
    error = json.loads(answer.body)["error"]
    assert (error["message"], error["param"]) == ("there is no ?", "a?")
