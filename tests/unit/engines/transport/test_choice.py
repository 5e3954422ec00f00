from __future__ import annotations

import pytest

from duologue.core.errors import ConfigError
from duologue.engines.executors import EXECUTORS
from duologue.engines.transport.choice import ALLOWED, AUTO, check_transport, choose_transport


def chosen(executor: str, asked: str = AUTO, **more: object) -> str:
    values = {"room_bytes": 1, "interpreter": None, "package": "json", **more}
    return choose_transport(executor, asked, **values)  # type: ignore[arg-type]


def test_each_executor_has_some() -> None:
    assert set(ALLOWED) == set(EXECUTORS)


@pytest.mark.parametrize(
    ("executor", "usual"), [("inline", "reference"), ("process", "slab"), ("ray", "zeromq")]
)
def test_where_workers_run_says_which_unless_the_stage_does(executor: str, usual: str) -> None:
    assert chosen(executor) == usual
    for name in ALLOWED[executor]:
        check_transport(executor, name, "a stage")
        assert chosen(executor, name) == name
    check_transport(executor, AUTO, "a stage")


@pytest.mark.parametrize(
    ("executor", "asked", "there_are"),
    [
        ("inline", "slab", "auto, reference"),
        ("process", "reference", "auto, slab, zeromq, nixl, link"),
        ("process", "cuda_ipc", "auto, slab, zeromq, nixl, link"),
        ("ray", "slab", "auto, zeromq, nixl, link"),
    ],
)
def test_what_does_not_go_together_is_refused_with_what_does(
    executor: str, asked: str, there_are: str
) -> None:
    with pytest.raises(ConfigError, match=f"^a stage: .*'{asked}'.*'{executor}'.*{there_are}$"):
        check_transport(executor, asked, "a stage")


def test_what_is_not_certain_to_be_installed_is_only_used_where_it_is_asked_for() -> None:
    assert chosen("ray", package="no_such_package") == "link"
    assert chosen("ray", interpreter="/other/python") == "link"
    assert chosen("ray", "zeromq", interpreter="/other/python") == "zeromq"
    assert chosen("process", interpreter="/other/python") == "slab"


@pytest.mark.parametrize("executor", ["process", "ray"])
def test_without_room_for_payloads_all_goes_with_the_messages(executor: str) -> None:
    assert chosen(executor, room_bytes=0) == "link"
    assert chosen(executor, "zeromq", room_bytes=0) == "link"
    assert chosen("inline", room_bytes=0) == "reference"
