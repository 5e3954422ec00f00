"""``/v1/omni/*``: stages sleep, wake, are paused and resumed; and what they are doing.

The routes, their bodies and the acknowledgements are those of vLLM-Omni, with names of stages
beside numbers. They exist only where ``gateway.admin_key`` is set. This module must not know how an
order is carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import msgspec
from aiohttp import web

from duologue.core.errors import EngineError
from duologue.engines.lifecycle_port import (
    EngineLook,
    LifecyclePort,
    Order,
    PauseStages,
    ResumeStages,
    SleepStages,
    StageAck,
    WakeStages,
)
from duologue.gateway.admin.key import AdminKey
from duologue.gateway.errors import json_answer, refusal
from duologue.gateway.http.body import read_json
from duologue.gateway.http.routes import JSON, Content, Route
from duologue.gateway.http.settings import HttpSettings
from duologue.protocol.errors import error_body
from duologue.protocol.events import ErrorBody

NO_STORE = {"Cache-Control": "no-store"}

AnOrder = TypeVar("AnOrder", SleepStages, WakeStages, PauseStages, ResumeStages)


class Acks(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of an order.

    Args:
        status: ``SKIPPED``: all was so already. ``ERROR``: something went wrong at some replica.
        error: Of the first replica at which it did.
    """

    status: Literal["SUCCESS", "SKIPPED", "ERROR"]
    acks: list[StageAck]
    error: ErrorBody | None = None


class Stages(msgspec.Struct, frozen=True):
    """What stages are doing, and how their workers started; one entry for each session host."""

    engines: list[EngineLook]


class StageRoutes:
    """The routes."""

    def __init__(self, lifecycle: LifecyclePort, key: AdminKey, settings: HttpSettings) -> None:
        self._lifecycle = lifecycle
        self._key = key
        self._settings = settings

    def routes(self) -> Sequence[Route]:
        """For the application; none without a key."""
        if not self._key:
            return ()
        return (
            self._route("sleep", "Let stages sleep: their memory is free.", SleepStages),
            self._route("wakeup", "Wake stages.", WakeStages),
            self._route("pause", "Let stages begin no work.", PauseStages),
            self._route("resume", "Let stages begin work again.", ResumeStages),
            Route(
                method="GET",
                path="/v1/omni/stages",
                operation="getStages",
                summary="Show what stages are doing, and how their workers started.",
                handle=self.look,
                answers=(Content(JSON, Stages),),
                is_work=False,
                needs_key=False,
            ),
        )

    async def look(self, request: web.Request) -> web.Response:
        """Show what stages are doing.

        Raises:
            AuthError: The admin key is missing or wrong.
        """
        self._key.check(request)
        return json_answer(Stages(await self._lifecycle.look()), headers=NO_STORE)

    def _route(self, name: str, summary: str, kind: Callable[[], AnOrder]) -> Route:
        decoder = msgspec.json.Decoder(kind)

        async def order(request: web.Request) -> web.Response:
            self._key.check(request)
            given = kind()
            if request.can_read_body:
                given = await read_json(request, decoder, self._settings)
            return await self._carry_out(given)

        return Route(
            method="POST",
            path=f"/v1/omni/{name}",
            operation=f"{name}Stages",
            summary=summary,
            handle=order,
            body=(Content(JSON, kind),),
            needs_body=False,
            answers=(Content(JSON, Acks),),
            refusals=(404, 409, 500, 501),
            is_work=False,
            needs_key=False,
        )

    async def _carry_out(self, order: Order) -> web.Response:
        acks = await self._lifecycle.carry_out(order)
        failed = [ack for ack in acks if ack.status == "ERROR"]
        if not failed:
            skipped = all(ack.status == "SKIPPED" for ack in acks)
            return json_answer(Acks("SKIPPED" if skipped else "SUCCESS", acks), headers=NO_STORE)
        error = EngineError(failed[0].message, code=failed[0].code)
        # Who has the admin key may read what stands in the log as well.
        body = msgspec.structs.replace(error_body(error), message=failed[0].message)
        return refusal(error, Acks("ERROR", acks, body))
