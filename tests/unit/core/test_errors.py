"""The tree of exceptions: whose fault it is, is part of the type."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from duologue.core import errors
from duologue.core.errors import CapacityError, ClientError, DuologueError
from duologue.protocol.errors import ErrorCode


def family(kind: type[DuologueError]) -> Iterator[type[DuologueError]]:
    """Every class of the module below a class."""
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield child
            yield from family(child)


KINDS = [DuologueError, *family(DuologueError)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_kind_has_a_code_that_clients_can_look_up(kind: type[DuologueError]) -> None:
    assert kind.default_code in list(ErrorCode)


def test_the_tree_in_the_docstring_is_the_whole_tree() -> None:
    drawn = (errors.__doc__ or "").split("```")[1]
    assert [kind.__name__ for kind in KINDS if kind.__name__ not in drawn] == []


def test_an_error_says_what_happened_and_keeps_the_values() -> None:
    exc = DuologueError("4 is over the limit of 3", code="limit_exceeded", details={"value": 4})
    assert (str(exc), exc.message) == ("4 is over the limit of 3",) * 2
    assert (exc.code, exc.details) == ("limit_exceeded", {"value": 4})


def test_details_are_a_copy_so_that_nobody_changes_them_later() -> None:
    details = {"value": 4}
    exc = DuologueError("no", details=details)
    details["value"] = 5
    assert exc.details == {"value": 4}


def test_a_client_error_names_the_field_and_the_event() -> None:
    exc = ClientError("no", param="session.voice", event_id="e1")
    assert (exc.param, exc.event_id, exc.code) == ("session.voice", "e1", "invalid_request")


def test_a_capacity_error_says_when_to_come_again() -> None:
    exc = CapacityError("full", retry_after_s=5.0)
    assert exc.retry_after_s == 5.0
    assert exc.details == {"retry_after_s": 5.0}
