"""``WS /v1/realtime/robot/openpi``: a robot says what it sees, and is told what to do.

Observations and actions are MessagePack, errors are text: openpi's client raises on those. One task
reads and one asks the policy, so that a newer observation takes the place of one that still waits.
The one that is being worked on is finished: with a robot that is faster than its policy, none would
be otherwise. This module must not know how a policy works.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from aiohttp import WSCloseCode, WSMsgType, web

from duologue.core.clock import Clock
from duologue.core.errors import (
    CapacityError,
    ClientError,
    DuologueError,
    EngineError,
    ProtocolError,
    StageTimeout,
)
from duologue.engines.policy_offer import PolicyOffer
from duologue.engines.policy_payloads import ActionChunk, DecideActions
from duologue.gateway.admission import RETRY_AFTER_S
from duologue.gateway.beside_loop import read_beside_loop
from duologue.gateway.http.routes import WAIT_PARAMETER, Content, Parameter, Route
from duologue.gateway.robot.newest import Newest
from duologue.gateway.robot.observations import description, is_reset, observation_of
from duologue.gateway.robot.settings import RobotSettings
from duologue.gateway.route_requests import RouteRequests
from duologue.gateway.ws.route_sockets import RouteSockets
from duologue.protocol.errors import ErrorCode, error_body, refused, shown
from duologue.protocol.events import ErrorBody
from duologue.protocol.openpi import read_values, write_values
from duologue.telemetry import Metrics

MSGPACK = "application/msgpack"
_SEED_BITS = 32


class RobotFault(msgspec.Struct, frozen=True, tag="error"):
    """An observation was refused, or its actions could not be found."""

    error: ErrorBody


class Observation(msgspec.Struct, frozen=True):
    """One that waits.

    Args:
        number: Of the observations that were received before it.
        came_s: When, on the clock of the process.
    """

    ask: DecideActions
    number: int
    came_s: float


class RobotStreamEndpoint:
    """The route.

    Args:
        offers: By the name of the pipeline; the first is the default.
    """

    def __init__(
        self,
        engine: RouteRequests,
        offers: Mapping[str, PolicyOffer],
        settings: RobotSettings,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._engine = engine
        self._offers = offers
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._sockets = RouteSockets()

    def routes(self) -> Sequence[Route]:
        """For the application."""
        return (
            Route(
                method="GET",
                path="/v1/realtime/robot/openpi",
                operation="driveRobot",
                summary="Ask a policy what a robot is to do (WebSocket, openpi's client).",
                handle=self.handle,
                answers=(Content(MSGPACK),),
                parameters=(
                    Parameter("model", "Name of the policy; none: the first one."),
                    WAIT_PARAMETER,
                ),
                refusals=(400, 404),
                is_socket=True,
            ),
        )

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        """Hold one connection.

        Raises:
            ClientError: There is no such policy.
            CapacityError: As many robots are connected as may be.
        """
        name = self._chosen(request.query.get("model"))
        limit = self._settings.max_connections
        if len(self._sockets) >= limit:
            raise CapacityError(
                f"{len(self._sockets)} robots are connected, the limit is {limit}",
                retry_after_s=RETRY_AFTER_S,
            )
        async with self._sockets.hold(
            request, max_message_bytes=self._settings.max_message_bytes
        ) as socket:
            robot = _Robot(
                socket,
                self._engine,
                name,
                self._offers[name],
                self._settings,
                self._clock,
                self._metrics,
            )
            await robot.hold()
        return socket

    async def close_all(self, limit_s: float) -> None:
        """Say goodbye to everybody, for ``limit_s`` at most: the server goes down."""
        await self._sockets.close_all(limit_s)

    def _chosen(self, name: str | None) -> str:
        if not self._offers:
            raise refused(
                "no model here drives robots: a pipeline that does is named in "
                "engine.pipeline_files",
                "model",
                ErrorCode.UNSUPPORTED,
            )
        if name is None:
            return next(iter(self._offers))
        if name not in self._offers:
            raise ProtocolError(
                f"there is no policy {shown(name)} here; there are: {', '.join(self._offers)}",
                code=ErrorCode.MODEL_NOT_FOUND,
                param="model",
            )
        return name


class _Robot:
    """One connection."""

    def __init__(
        self,
        socket: web.WebSocketResponse,
        engine: RouteRequests,
        model: str,
        offer: PolicyOffer,
        settings: RobotSettings,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._socket = socket
        self._engine = engine
        self._model = model
        self._offer = offer
        self._settings = settings
        self._clock = clock
        self._outcomes = metrics.robot_observations
        self._newest: Newest[Observation] = Newest()
        self._works = False
        self._received = 0
        self._dropped = 0

    async def hold(self) -> None:
        """Answer until the robot leaves or is silent for too long.

        Raises:
            ConnectionError: It has gone.
        """
        await self._socket.send_bytes(write_values(description(self._model, self._offer)))
        try:
            async with asyncio.TaskGroup() as group:
                decider = group.create_task(self._decide(), name="robot")
                try:
                    await self._read()
                finally:
                    decider.cancel()
        except* ConnectionError:
            pass  # whoever wrote last found out that the robot has gone

    async def _read(self) -> None:
        limit_s = self._settings.idle_timeout_s or None
        while True:
            try:
                message = await self._socket.receive(limit_s)
            except TimeoutError:
                if self._works or self._newest:
                    continue
                idle = ClientError(
                    f"no observation came for {limit_s:g} s", code=ErrorCode.IDLE_TIMEOUT
                )
                await self._send_fault(idle)
                await self._socket.close(code=WSCloseCode.GOING_AWAY, message=b"idle")
                return
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                return
            try:
                if message.type is WSMsgType.TEXT:
                    raise refused(
                        "messages of a client are MessagePack, sent as bytes",
                        None,
                        ErrorCode.INVALID_MSGPACK,
                    )
                await self._take(message.data)
            except ClientError as exc:
                self._outcomes["refused"].inc()
                await self._send_fault(exc)

    async def _take(self, message: bytes) -> None:
        values = await read_beside_loop(read_values, message)
        if is_reset(values):
            if self._newest.clear():
                self._note_stale()
            await self._socket.send_bytes(write_values({"status": "reset successful"}))
            return
        ask = observation_of(values, self._offer, secrets.randbits(_SEED_BITS))
        if self._newest.put(Observation(ask, self._received, self._clock.now())):
            self._note_stale()
        self._received += 1

    def _note_stale(self) -> None:
        self._dropped += 1
        self._outcomes["stale"].inc()

    async def _decide(self) -> None:
        while True:
            observation = await self._newest.take()
            self._works = True
            began_s = self._clock.now()
            try:
                chunk = await self._actions(observation)
            except DuologueError as exc:
                is_late = isinstance(exc, StageTimeout)
                self._outcomes["late" if is_late else "failed"].inc()
                await self._send_fault(exc)
            else:
                self._outcomes["answered"].inc()
                await self._send_actions(observation, chunk, began_s)
            self._works = False

    async def _actions(self, observation: Observation) -> ActionChunk:
        """Ask the policy.

        Raises:
            EngineError: It failed, or did not answer by the deadline.
            CapacityError: It has no room.
        """
        limit_s = self._settings.deadline_s
        left_s = observation.came_s + limit_s - self._clock.now()
        late = StageTimeout(f"no actions within {limit_s:g} s of their observation")
        if left_s <= 0:
            raise late
        try:
            async with asyncio.timeout(left_s):
                with self._engine.request(self._model, observation.ask) as outputs:
                    async for payload in outputs:
                        if isinstance(payload, ActionChunk):
                            return payload
        except TimeoutError:
            raise late from None
        raise EngineError("a policy ended without actions")

    async def _send_actions(
        self, observation: Observation, chunk: ActionChunk, began_s: float
    ) -> None:
        now = self._clock.now()
        timing = {
            "wait_ms": 1000 * (began_s - observation.came_s),
            "infer_ms": 1000 * (now - began_s),
        }
        actions = np.frombuffer(chunk.values, "<f4").reshape(chunk.horizon, chunk.dim)
        answer = {
            "actions": actions,
            "observation": observation.number,
            "dropped": self._dropped,
            "server_timing": timing,
        }
        await self._socket.send_bytes(write_values(answer))

    async def _send_fault(self, exc: DuologueError) -> None:
        await self._socket.send_str(msgspec.json.encode(RobotFault(error_body(exc))).decode())
