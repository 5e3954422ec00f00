"""Every phase of a call, to break its line there, and the ways in which a line may break."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from tests.faults.gateway_line import (
    CALLING,
    COMMIT,
    CREATE,
    FUNCTION,
    LONG,
    PATH,
    UPDATE,
    append,
)
from tests.unit.gateway.raw_websocket import TEXT, UPGRADE, RawWebSocket, masked, request

Phase = Callable[[RawWebSocket], Awaitable[None]]
Cut = Callable[[RawWebSocket], None]


async def half_a_request(line: RawWebSocket) -> None:
    line.write(request(PATH, {"Host": "h", **UPGRADE})[:-10])


async def right_behind_the_request(line: RawWebSocket) -> None:
    line.write(request(PATH, {"Host": "h", **UPGRADE}))


async def opened(line: RawWebSocket) -> None:
    await line.upgrade(f"{PATH}?model={LONG}")


async def greeted(line: RawWebSocket) -> None:
    await opened(line)
    line.send_event(UPDATE)
    await line.until("session.updated")


async def in_the_midst_of_an_append(line: RawWebSocket) -> None:
    await greeted(line)
    line.write(masked(TEXT, json.dumps(append(1000)).encode())[:20_000])


async def speaking(line: RawWebSocket) -> None:
    await opened(line)
    for _ in range(5):
        line.send_event(append(100))
    await line.until("input_audio_buffer.speech_started")


async def committed(line: RawWebSocket) -> None:
    await greeted(line)
    line.send_event(append(600))
    line.send_event(COMMIT)
    await line.until("input_audio_buffer.committed")


async def right_behind_a_request_for_an_answer(line: RawWebSocket) -> None:
    await committed(line)
    line.send_event(CREATE)


async def answered(line: RawWebSocket) -> None:
    await right_behind_a_request_for_an_answer(line)
    await line.until("response.created")


async def in_the_midst_of_an_answer(line: RawWebSocket) -> None:
    await right_behind_a_request_for_an_answer(line)
    await line.until("response.output_audio.delta")


async def while_a_function_runs(line: RawWebSocket) -> None:
    await line.upgrade(f"{PATH}?model={CALLING}")
    session = {**UPDATE["session"], "tools": [FUNCTION]}
    line.send_event({"type": "session.update", "session": session})
    line.send_event(CREATE)
    await line.until("response.function_call_arguments.done")
    await line.until("response.done")


async def interrupting(line: RawWebSocket) -> None:
    await in_the_midst_of_an_answer(line)
    line.send_event({"type": "response.cancel"})


async def saying_goodbye(line: RawWebSocket) -> None:
    await in_the_midst_of_an_answer(line)
    line.close()


PHASES: tuple[Phase, ...] = (
    half_a_request,
    right_behind_the_request,
    opened,
    greeted,
    in_the_midst_of_an_append,
    speaking,
    committed,
    right_behind_a_request_for_an_answer,
    answered,
    in_the_midst_of_an_answer,
    while_a_function_runs,
    interrupting,
    saying_goodbye,
)
CUTS: tuple[Cut, ...] = (RawWebSocket.reset, RawWebSocket.finish)
