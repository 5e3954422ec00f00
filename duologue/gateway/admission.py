"""Whether a call may begin now: the models are loaded, and there is room.

This module must not know who asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from duologue.core.errors import CapacityError
from duologue.engines.pools.start_report import StartReport
from duologue.hosts.port import HostPort
from duologue.protocol.errors import ErrorCode

RETRY_AFTER_S = 2.0


@dataclass(frozen=True, slots=True)
class Workers:
    """How many workers of the engine there are, and how many are warm.

    Args:
        every_stage: Whether each stage has at least one that is.
        asleep: Stages that take no work, since they sleep or are on their way; ``paused``: that
            begin none.
        start: How they started.
        max_sessions: How many sessions there may be, as they have found out; 0: not known.
    """

    ready: int
    total: int
    every_stage: bool
    asleep: Sequence[str] = ()
    paused: Sequence[str] = ()
    start: StartReport | None = None
    max_sessions: int = 0


class Admission:
    """The door.

    Args:
        workers: Takes a look at the engine.
    """

    def __init__(self, host: HostPort, workers: Callable[[], Workers]) -> None:
        self._host = host
        self._workers = workers
        self._loaded = False

    def open(self) -> None:
        """All models are loaded: calls may come."""
        self._loaded = True

    @property
    def workers(self) -> Workers:
        """How far loading is, or what is left."""
        return self._workers()

    def check_loaded(self) -> None:
        """Refuse what needs the models, but no room.

        Raises:
            CapacityError: The server is starting.
        """
        if not self._loaded:
            raise CapacityError(
                "the models are still loading",
                code=ErrorCode.NOT_READY,
                retry_after_s=RETRY_AFTER_S,
            )
        self._host.check_loaded()

    def check_call(self) -> None:
        """Refuse a call that could not begin.

        A worker that is being restarted refuses nobody: it will be back before it is needed.

        Raises:
            CapacityError: The server is starting, full or going down, or others wait for a place.
        """
        self.check_loaded()
        self._host.check_room()

    def check_request(self) -> None:
        """Refuse a plain request that could not be worked on. Calls take no room from it.

        Raises:
            CapacityError: The server is starting or going down.
        """
        self.check_loaded()
        if not self._host.accepting:
            raise CapacityError(
                "the server is shutting down",
                code=ErrorCode.SHUTTING_DOWN,
                retry_after_s=RETRY_AFTER_S,
            )

    def check_ready(self) -> None:
        """Refuse where a new call should rather go to another server.

        Raises:
            CapacityError: As ``check_call``, or a stage has no worker at the moment.
        """
        self.check_call()
        if not self._workers().every_stage:
            raise CapacityError(
                "a model is being restarted",
                code=ErrorCode.NOT_READY,
                retry_after_s=RETRY_AFTER_S,
            )
