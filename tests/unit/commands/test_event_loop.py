from __future__ import annotations

import asyncio

import pytest
import uvloop

from duologue.commands.event_loop import run_async


async def loop_type() -> type:
    return type(asyncio.get_running_loop())


async def fails() -> None:
    raise KeyError("mine")


def test_commands_run_on_the_fast_loop_and_return_what_they_find() -> None:
    assert run_async(loop_type()) is uvloop.Loop


def test_an_error_passes_through() -> None:
    with pytest.raises(KeyError, match="mine"):
        run_async(fails())
