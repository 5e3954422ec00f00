"""A code that clients may see is a row of one table; here the code of the server is searched."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from duologue.protocol.errors import ErrorCode

PACKAGE = Path(__file__).parents[2] / "duologue"
SERVER = ("core", "protocol", "gateway", "sessions", "duplex_plugins", "engines")

OF_RUNNERS = {
    "audio_break": "clients are told stage_failed",
    "diffusion_failed": "clients are told stage_failed",
    "payload_lost": "clients are told stage_failed",
    "upstream_failed": "clients are told stage_failed",
    "upstream_unreachable": "clients are told stage_failed",
}
"""Codes for logs, from inside a worker: sessions show a code that the table lacks as another."""


def codes() -> Iterator[tuple[str, str]]:
    """Each code that an exception may carry, with the place where it is named."""
    for folder in SERVER:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            constants = {
                node.targets[0].id: node.value
                for node in tree.body
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            }
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and raises_error(node):
                    values = [key.value for key in node.keywords if key.arg == "code"]
                elif (
                    isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "default_code"
                ):
                    values = [node.value]
                else:
                    continue
                for value in values:
                    if isinstance(value, ast.Name):
                        value = constants.get(value.id, value)
                    if isinstance(value, ast.Constant) and isinstance(value.value, str):
                        where = f"{path.relative_to(PACKAGE)}:{node.lineno}"
                        yield value.value, where


def raises_error(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    return name.endswith("Error") or name in ("LimitExceeded", "RateLimited", "CreditExceeded")


def test_every_code_that_a_client_may_see_is_in_the_table() -> None:
    found = list(codes())
    assert len(found) > 15
    known = set(ErrorCode) | set(OF_RUNNERS)
    assert [(code, where) for code, where in found if code not in known] == []


def test_no_exception_is_listed_in_vain() -> None:
    assert set(OF_RUNNERS) <= {code for code, _ in codes()}
