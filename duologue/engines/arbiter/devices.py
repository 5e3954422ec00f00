"""The boards of all shared devices of an engine: who sits where, and who has left.

This module must not know what is decided at a board.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import structlog

from duologue.core.errors import ConfigError
from duologue.engines.arbiter.board import Board
from duologue.engines.arbiter.sharing import SharedDevice, device_of, worker_name
from duologue.engines.messages import Share
from duologue.engines.pipeline import StageSpec
from duologue.engines.transport import memory_file

log = structlog.get_logger(__name__)


class Devices:
    """All shared devices.

    Args:
        shared: By name, see ``sharing.shared_devices``.

    Raises:
        ConfigError: The system gives no memory that workers could share.

    Concurrency:
        Belongs to the event loop; waits for no worker.
    """

    def __init__(self, shared: Mapping[str, SharedDevice]) -> None:
        self._boards: dict[str, Board] = {}
        self._seats: dict[str, tuple[str, int]] = {}
        if shared and not memory_file.is_available():
            log.warning("devices_not_shared_out", devices=sorted(shared))
            return
        for name, device in shared.items():
            try:
                board = Board.make(name, len(device.workers), device.period_s, device.budget_bytes)
            except OSError as exc:
                raise ConfigError(f"no memory to share the device {name!r} out: {exc}") from exc
            self._boards[name] = board
            for seat, worker in enumerate(device.workers):
                self._seats[worker] = name, seat

    def shares_of(self, stage_key: str, stage: StageSpec) -> Sequence[Share | None]:
        """Return the share of each worker of a stage."""
        shares: list[Share | None] = []
        for number in range(stage.replicas):
            worker = worker_name(stage_key, number)
            if worker not in self._seats or device_of(stage, number) is None:
                shares.append(None)
                continue
            name, seat = self._seats[worker]
            period_s = (stage.deadline_ms or 0) / 1000
            shares.append(
                Share(board=self._boards[name].fd, seat=seat, device=name, period_s=period_s)
            )
        return shares

    def left(self, worker: str) -> None:
        """A worker is gone: what it held is free."""
        if worker in self._seats:
            name, seat = self._seats[worker]
            self._boards[name].leave(seat)

    @property
    def held_bytes(self) -> int:
        """What the workers of all devices with a budget hold of it."""
        return sum(board.look().held_bytes for board in self._budgeted())

    @property
    def fill(self) -> float:
        """How full the fullest device is, of those with a budget."""
        return max(
            (board.look().held_bytes / board.budget_bytes for board in self._budgeted()),
            default=0.0,
        )

    def close(self) -> None:
        """No worker lives any more."""
        for board in self._boards.values():
            board.close()
        self._boards.clear()
        self._seats.clear()

    def _budgeted(self) -> list[Board]:
        return [board for board in self._boards.values() if board.budget_bytes]
