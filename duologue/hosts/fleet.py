"""Several session hosts as one: new calls go where there is room, others where they are.

This module must not know sockets or directories, nor what a session is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

import msgspec

from duologue.core.errors import AuthError, CapacityError, UnknownSession
from duologue.engines.ports import EnginePort
from duologue.hosts.faults import host_lost
from duologue.hosts.fleet_answers import FleetAnswers
from duologue.hosts.fleet_engine import FleetEngine
from duologue.hosts.fleet_jobs import FleetJobs, Keeper
from duologue.hosts.held_slot import HostSlots
from duologue.hosts.local import unknown_call
from duologue.hosts.messages import NO_START, Status
from duologue.hosts.port import Arrival, InTurn, LateOpening, LookingOn, Opening, Return, Slot
from duologue.hosts.remote_host import CallHolder, RemoteHost
from duologue.hosts.remote_lifecycle import FleetLifecycle
from duologue.hosts.routed_late import RoutedLate
from duologue.hosts.routing import by_room, owner_of, tag_of
from duologue.protocol.duplex.commands import ResumeSession
from duologue.protocol.session_config import AnySession
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.owners import Owner
from duologue.sessions.port import Joined
from duologue.sessions.watching.look import SessionLook
from duologue.telemetry.gathering import ProcessFigures


class HostFleet:
    """The hosts that a gateway knows.

    Args:
        local: That of the gateway's own machine, if there is one; it goes first among equals.
        pipelines: What the engines of all of them serve.
    """

    def __init__(self, local: RemoteHost | None, pipelines: Iterable[str]) -> None:
        self.members: list[RemoteHost] = [] if local is None else [local]
        self.engine: EnginePort = FleetEngine(self._engines, pipelines)
        self.jobs = FleetJobs(self._keepers, self._is_whole)
        self.answers = FleetAnswers(
            lambda: [(host.status.tag, host.answers) for host in self._linked()]
        )
        self.lifecycle = FleetLifecycle(
            lambda: [(host.status.tag, host.lifecycle) for host in self._linked()]
        )
        self.slots = HostSlots(self._slot)
        self._local = local
        self._held: dict[str, Owner] = {}
        self._calls: CallHolder | None = None
        self._group: asyncio.TaskGroup | None = None

    async def start(self) -> None:
        """From now on clients may be received, until ``stop``."""
        # Entered and left by hand: what happens between is not the group's.
        group = asyncio.TaskGroup()
        await group.__aenter__()
        self._group = group

    async def stop(self) -> None:
        """Wait until nobody is being sent to a host any more."""
        group, self._group = self._group, None
        if group is not None:
            await group.__aexit__(None, None, None)

    def add(self, host: RemoteHost) -> None:
        """Know one more."""
        host.calls = self._calls
        self.members.append(host)
        for call_id, owner in self._held.items():
            host.call_began(call_id, owner)

    def remove(self, host: RemoteHost) -> None:
        """Know one less."""
        self.members.remove(host)

    @property
    def calls(self) -> CallHolder | None:
        """This gateway's own WebRTC calls."""
        return self._calls

    @calls.setter
    def calls(self, calls: CallHolder) -> None:
        """Let every host ask these."""
        self._calls = calls
        for host in self.members:
            host.calls = calls

    @property
    def status(self) -> Status:
        """All of them together."""
        linked = [host.status for host in self._linked()]
        return Status(
            loaded=any(status.loaded for status in linked),
            accepting=any(status.accepting for status in linked),
            sessions=sum(status.sessions for status in linked),
            max_sessions=sum(status.max_sessions for status in linked),
            detached=sum(status.detached for status in linked),
            waiting=sum(status.waiting for status in linked),
            workers_ready=sum(status.workers_ready for status in linked),
            workers=sum(status.workers for status in linked),
            every_stage=any(status.every_stage for status in linked),
            asleep=_all_of(status.asleep for status in linked),
            paused=_all_of(status.paused for status in linked),
            start=max((status.start for status in linked), key=lambda each: each.took_s)
            if linked
            else NO_START,
            edges=0 if self._local is None else self._local.status.edges,
            edges_expected=0 if self._local is None else self._local.status.edges_expected,
        )

    # HostPort

    @property
    def accepting(self) -> bool:
        """Whether any of them is not going down."""
        return any(host.accepting for host in self._linked())

    def __len__(self) -> int:
        return sum(len(host) for host in self._linked())

    def check_loaded(self) -> None:
        """Refuse what no host could do."""
        self._first_that(RemoteHost.check_loaded)

    def check_room(self) -> None:
        """Refuse a call that no host has room for."""
        self._first_that(RemoteHost.check_room)

    async def open(self, arrival: Arrival) -> Joined:
        """Receive a client, at the host that it belongs to or the one with the most room."""
        match arrival:
            case Return(session_id=session_id):
                return await self._return(arrival, session_id)
            case LookingOn(call_id=call_id):
                return await self._look_on(arrival, call_id)
            case InTurn(opening=opening):
                return self._routed(await self._in_turn(arrival), opening)
            case _:
                return self._routed(await self._with_room(arrival), arrival)

    def begin(self, opening: Opening) -> Joined:
        """Open a session for a connection that is there."""
        for host in self._by_room():
            return host.begin(opening)
        self.check_room()
        raise host_lost()

    async def preview(self, model: str | None, patch: SessionPatch) -> AnySession:
        """Return what a session opened with ``patch`` would be like; they are all alike."""
        for host in self._linked():
            return await host.preview(model, patch)
        raise host_lost()

    async def look(self) -> list[SessionLook]:
        """Return what all open sessions look like."""
        looks = await asyncio.gather(*[host.look() for host in self._linked()])
        return [look for of_host in looks for look in of_host]

    async def hang_up(self, call_id: str, owner: Owner) -> None:
        """End a call that another gateway holds."""
        for host in self._linked():
            try:
                await host.hang_up(call_id, owner)
            except UnknownSession:
                continue
            return
        raise unknown_call(call_id)

    def call_began(self, call_id: str, owner: Owner) -> None:
        """Let all hosts know of a call that is held here."""
        self._held[call_id] = owner
        for host in self.members:
            host.call_began(call_id, owner)

    def call_ended(self, call_id: str) -> None:
        """And that it is over."""
        self._held.pop(call_id, None)
        for host in self.members:
            host.call_ended(call_id)

    # Beyond

    async def take(self, owner_name: str) -> float:
        """Count a request with a key, at the one host that counts for this key."""
        linked = list(self._linked())
        if not linked:
            raise host_lost()
        place = owner_of(owner_name, [host.status.tag for host in linked])
        return await linked[place].take(owner_name)

    async def all_figures(self) -> list[ProcessFigures]:
        """Return the figures of this machine's processes, and of the hosts of others."""
        found: list[ProcessFigures] = []
        for host in self._linked():
            figures = await host.all_figures()
            if host is self._local:
                found += figures
            else:
                # Their gateways answer for themselves, where somebody asks one of them.
                found += [
                    ProcessFigures(f"host-{host.status.tag}", each.figures)
                    for each in figures
                    if each.process == host.name
                ]
        return found

    def leave(self, reason: str) -> None:
        """End all connections to sessions here; the sessions go on without them."""
        for host in self.members:
            host.leave(reason)

    # Private

    def _linked(self) -> Iterator[RemoteHost]:
        return (host for host in self.members if host.is_linked)

    def _by_room(self) -> list[RemoteHost]:
        statuses = [host.status if host.is_linked else None for host in self.members]
        return [self.members[place] for place in by_room(statuses)]

    def _by_work(self) -> list[RemoteHost]:
        """Return the hosts that take requests, the one with the fewest of this gateway first."""
        able = [host for host in self._linked() if host.status.loaded and host.status.accepting]
        return sorted(able, key=lambda host: len(host.engine))

    def _engines(self) -> list[EnginePort]:
        return [host.engine for host in self._by_work()]

    async def _slot(self, wanted: Slot) -> Joined:
        """Take a slot where one is free, else wait for one where the request would go."""
        hosts = self._by_work()
        if len(hosts) > 1:
            for host in hosts:
                with suppress(CapacityError):
                    return await host.open(msgspec.structs.replace(wanted, wait_s=0))
        for host in hosts:
            return await host.open(wanted)
        raise host_lost()

    def _keepers(self) -> list[Keeper]:
        return [
            Keeper(host.status.tag, host.jobs, host.status.loaded and host.status.accepting)
            for host in self._linked()
        ]

    def _is_whole(self) -> bool:
        return all(host.is_linked for host in self.members)

    def _first_that(self, check: Callable[[RemoteHost], None]) -> None:
        refusal: CapacityError = host_lost()
        for host in self.members:
            try:
                check(host)
            except CapacityError as exc:
                if host.is_linked:
                    refusal = exc
            else:
                return
        raise refusal

    async def _with_room(self, arrival: Arrival) -> Joined:
        """Open at the host with the most room; another gateway may have been quicker there."""
        refusal: CapacityError | None = None
        for host in self._by_room() or list(self._linked()):
            try:
                return await host.open(arrival)
            except CapacityError as exc:
                refusal = exc
        raise refusal or host_lost()

    async def _in_turn(self, arrival: InTurn) -> Joined:
        """Open where there is room, or let a client wait where the fewest do."""
        if self._by_room():
            with suppress(CapacityError):  # another gateway was quicker
                return await self._with_room(arrival.opening)
        refusal: CapacityError = host_lost()
        for host in sorted(self._linked(), key=lambda host: host.status.waiting):
            try:
                return await host.open(arrival)
            except CapacityError as exc:
                refusal = exc
        raise refusal

    def _routed(self, port: Joined, opening: Arrival) -> Joined:
        """Let a client that describes its session late be moved to the host of its session."""
        if isinstance(opening, LateOpening) and len(self.members) > 1 and self._group is not None:
            return RoutedLate(port, partial(self._late_at, opening), self._group)
        return port

    async def _return(self, arrival: Return | LateOpening, session_id: str) -> Joined:
        """Go to the host of a session; where its tag is unknown, to whoever knows the session."""
        tag = tag_of(session_id)
        linked = sorted(self._linked(), key=lambda host: not host.status.holds(tag))
        refusal: AuthError | CapacityError = host_lost()
        for host in linked:
            try:
                return await host.open(arrival)
            except (AuthError, CapacityError) as exc:
                refusal = exc
                if host.status.holds(tag):
                    break
        raise refusal

    async def _late_at(self, arrival: LateOpening, command: ResumeSession) -> Joined | None:
        """Open at the host of the session that a late client goes on with; ``None``: stay."""
        tag = tag_of(command.session_id)
        for host in self._linked():
            if host.status.holds(tag):
                return await host.open(
                    LateOpening(opening=arrival.opening, timeout_s=arrival.timeout_s, resumes=True)
                )
        return None

    async def _look_on(self, arrival: LookingOn, call_id: str) -> Joined:
        for host in self._linked():
            try:
                return await host.open(arrival)
            except UnknownSession:
                continue
        raise unknown_call(call_id)


def _all_of(stages: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(sorted({stage for of_host in stages for stage in of_host}))
