from __future__ import annotations

import inspect

import pytest

from duologue.core import errors as core_errors
from duologue.core.errors import (
    CapacityError,
    ClientError,
    DuologueError,
    EngineError,
    LimitExceeded,
    PluginError,
    ProtocolError,
)
from duologue.protocol.errors import (
    ERROR_TABLE,
    MAX_MESSAGE_CHARS,
    ErrorCode,
    error_body,
    error_code,
    error_event,
    over_limit,
    refused,
    shown,
)

CODES_THAT_STOCK_CLIENTS_MATCH = {
    "response_cancel_not_active",
    "conversation_already_has_active_response",
    "input_audio_buffer_commit_empty",
    "item_create_duplicate_item_id",
    "item_retrieve_invalid_item_id",
}

CODES_THAT_END_A_CLIENT_FOR_GOOD = {
    "insufficient_quota",
    "credit_balance_exhausted",
    "account_deactivated",
    "billing_hard_limit_reached",
}


@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_has_a_row_that_fits_the_transports(code: ErrorCode) -> None:
    row = ERROR_TABLE[code]
    assert 400 <= row.http_status <= 599
    assert row.close_code in {1001, 1008, 1009, 1011, 1012, 1013, 4001}
    assert row.public_text.endswith(".")
    assert (row.http_status >= 500) == (row.type in {"server_error", "overloaded_error"})


def test_the_codes_that_stock_clients_match_are_there() -> None:
    assert set(ErrorCode) >= CODES_THAT_STOCK_CLIENTS_MATCH
    assert not set(ErrorCode) & CODES_THAT_END_A_CLIENT_FOR_GOOD


def test_every_error_of_ours_has_a_code_in_the_table() -> None:
    classes = [
        member
        for _, member in inspect.getmembers(core_errors, inspect.isclass)
        if issubclass(member, DuologueError)
    ]
    assert len(classes) > 10
    for cls in classes:
        assert ErrorCode(cls.default_code) in ERROR_TABLE


def test_a_clients_mistake_is_told_in_its_own_words() -> None:
    exc = ProtocolError("x is 2, limit is 1", code="invalid_value", param="x", event_id="event_7")
    body = error_body(exc)
    assert body.type == "invalid_request_error"
    assert body.code == "invalid_value"
    assert body.message == "x is 2, limit is 1"
    assert body.param == "x"
    assert body.event_id == "event_7"


@pytest.mark.parametrize(
    ("exc", "code"),
    [
        (EngineError("cuda:0 says secret"), "stage_failed"),
        (PluginError("secret"), "plugin_error"),
        (CapacityError("secret", retry_after_s=1), "server_full"),
        (DuologueError("secret", code="not a code"), "server_error"),
        (KeyError("secret"), "server_error"),
        (ValueError("secret"), "server_error"),
    ],
)
def test_what_went_wrong_inside_is_not_told(exc: Exception, code: str) -> None:
    body = error_body(exc, "event_7")
    assert body.code == code
    assert "secret" not in repr(body)
    assert body.message == ERROR_TABLE[ErrorCode(code)].public_text
    assert body.event_id == "event_7"


def test_a_clients_mistake_with_a_code_of_its_own_is_an_invalid_request() -> None:
    assert error_code(ClientError("x", code="not a code")) is ErrorCode.INVALID_REQUEST
    assert error_code(EngineError("x", code="upstream_busy")) is ErrorCode.STAGE_FAILED


def test_a_mistake_without_words_gets_those_of_its_code() -> None:
    assert error_body(ClientError("")).message == ERROR_TABLE[ErrorCode.INVALID_REQUEST].public_text


def test_the_id_of_the_event_is_the_exceptions_own_or_else_the_callers() -> None:
    assert error_body(ProtocolError("x"), "caller").event_id == "caller"
    assert error_body(ProtocolError("x", event_id="own"), "caller").event_id == "own"
    assert error_body(ProtocolError("x")).event_id is None


def test_an_event_id_of_insane_length_is_not_repeated() -> None:
    assert error_body(ProtocolError("x", event_id="e" * 513)).event_id is None
    assert error_body(ValueError(), "e" * 512).event_id == "e" * 512


def test_the_error_event_holds_the_body() -> None:
    exc = ProtocolError("x")
    assert error_event(exc, "e").error == error_body(exc, "e")


def test_cancelling_nothing_begins_with_the_words_that_clients_look_for() -> None:
    text = ERROR_TABLE[ErrorCode.CANCEL_NOT_ACTIVE].public_text
    assert text.startswith("Cancellation failed")


def test_refusals_carry_code_and_field() -> None:
    exc = refused("no", "a.b", ErrorCode.UNKNOWN_PARAMETER)
    assert isinstance(exc, ProtocolError)
    assert (exc.code, exc.param) == ("unknown_parameter", "a.b")
    limit = over_limit("audio", 5, 4, "audio", "bytes")
    assert isinstance(limit, LimitExceeded)
    assert str(limit) == "audio: 5 bytes, limit is 4 bytes"
    assert str(over_limit("audio", 5, 4, "audio")) == "audio: 5, limit is 4"


def test_a_long_value_is_shown_in_part() -> None:
    assert shown("abc") == "'abc'"
    assert len(shown("x" * 10**6)) < 100
    assert shown(5) == "5"


def test_a_message_is_bounded_whatever_was_refused() -> None:
    assert len(error_body(ProtocolError("x" * 100_000)).message) == MAX_MESSAGE_CHARS
