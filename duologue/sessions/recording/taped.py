"""A session machine that records everything that is done with it, and what came of it.

Made instead of a plain one where calls are recorded; a call that is not recorded pays nothing.
This module must not decide anything, nor know where recordings lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from duologue.core.ids import IdMaker
from duologue.duplex_plugins.contract import DuplexPlugin
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.events import Event
from duologue.protocol.session_config import SessionConfig
from duologue.sessions.effects import Effect, EndSession
from duologue.sessions.history.inheritance import Carried
from duologue.sessions.inputs import Rejected, SessionInput
from duologue.sessions.machine import SessionMachine
from duologue.sessions.recording.packing import Content, pack
from duologue.sessions.recording.recording import VERSION, Header, Step, result_content
from duologue.sessions.settings import SessionSettings
from duologue.telemetry.tape import Tape

T = TypeVar("T")


class TapedMachine(SessionMachine):
    """Does what its base does, and keeps a ``Step`` of each call that can change it."""

    def __init__(
        self,
        tape: Tape,
        served: str,
        session_id: str,
        model: str,
        plugin: DuplexPlugin,
        config: SessionConfig,
        settings: SessionSettings,
        *,
        detectors: frozenset[str],
        new_id: IdMaker,
        now: float,
        wall_time: float,
        edge_plays: bool = False,
    ) -> None:
        self._tape = tape
        self._ids: list[str] = []

        def noted_id(prefix: str) -> str:
            made = new_id(prefix)
            self._ids.append(made)
            return made

        super().__init__(
            session_id,
            model,
            plugin,
            config,
            settings,
            detectors=detectors,
            new_id=noted_id,
            now=now,
            wall_time=wall_time,
            edge_plays=edge_plays,
        )
        tape.add(
            msgspec.json.encode(
                Header(
                    version=VERSION,
                    session_id=session_id,
                    model=model,
                    served=served,
                    content=tape.content,
                    now=now,
                    wall_time=wall_time,
                    settings=settings.model_dump(mode="json"),
                    config=pack(config, Content.ALL if tape.content else Content.NONE),
                    detectors=sorted(detectors),
                    edge_plays=edge_plays,
                    output_rate_hz=plugin.capabilities().output_rate_hz,
                    input_rate_hz=plugin.capabilities().input_rate_hz,
                    ids=self._take_ids(),
                )
            )
        )

    def open(self, now: float) -> Sequence[Effect]:
        """Record the greeting."""
        return self._noted("open", now, (), lambda: super(TapedMachine, self).open(now))

    def apply(self, item: SessionInput, now: float) -> Sequence[Effect]:
        """Record an input."""
        return self._noted(
            "apply", now, (item,), lambda: super(TapedMachine, self).apply(item, now)
        )

    def judge(self, append: AppendAudio) -> AppendAudio | Rejected:
        """Record a long append, before its slices are applied."""
        return self._noted("judge", 0.0, (append,), lambda: super(TapedMachine, self).judge(append))

    def on_timer(self, now: float) -> Sequence[Effect]:
        """Record the passage of time."""
        return self._noted("on_timer", now, (), lambda: super(TapedMachine, self).on_timer(now))

    def pull(self, now: float, max_bytes: int) -> tuple[list[Event], Sequence[Effect]]:
        """Record what was taken out."""
        return self._noted(
            "pull", now, (max_bytes,), lambda: super(TapedMachine, self).pull(now, max_bytes)
        )

    def played(self, item_id: str, played_ms: int) -> None:
        """Record how far the edge has played."""
        self._noted(
            "played",
            0.0,
            (item_id, played_ms),
            lambda: super(TapedMachine, self).played(item_id, played_ms),
        )

    def acknowledge(self, now: float) -> None:
        """Record that the client has said what it has."""
        self._noted("acknowledge", now, (), lambda: super(TapedMachine, self).acknowledge(now))

    def outlive(self) -> None:
        """Record that the session may outlive its connection."""
        self._noted("outlive", 0.0, (), super().outlive)

    def detach(self, now: float) -> None:
        """Record that the connection is lost."""
        self._noted("detach", now, (), lambda: super(TapedMachine, self).detach(now))

    def reattach(self, now: float, pieces: Sequence[tuple[str, float]] = ()) -> None:
        """Record that another connection has come."""
        self._noted(
            "reattach",
            now,
            (list(pieces),),
            lambda: super(TapedMachine, self).reattach(now, pieces),
        )

    def inherit(self, items: tuple[Carried, ...], *, unanswered: bool) -> None:
        """Record what the session begins with."""
        self._noted(
            "inherit",
            0.0,
            (list(items), unanswered),
            lambda: super(TapedMachine, self).inherit(items, unanswered=unanswered),
        )

    def close(self, reason: str, now: float) -> Sequence[Effect]:
        """Record the end."""
        return self._noted(
            "close", now, (reason,), lambda: super(TapedMachine, self).close(reason, now)
        )

    def crash(self, reason: str) -> Sequence[Effect]:
        """Record the end of a session that is broken."""
        return self._noted("crash", 0.0, (reason,), lambda: super(TapedMachine, self).crash(reason))

    def _noted(self, call: str, now: float, given: tuple[object, ...], do: Callable[[], T]) -> T:
        depth = self._depth
        if depth:
            # One of our methods that another one calls: it happens again when that one does.
            return do()
        self._depth = 1
        result: Any = None
        raised = ""
        try:
            result = do()
            return result  # type: ignore[no-any-return]
        except BaseException as exc:
            raised = type(exc).__name__
            raise
        finally:
            self._depth = 0
            content = self._tape.content
            self._tape.add(
                msgspec.json.encode(
                    Step(
                        call=call,
                        now=now,
                        given=pack(given, Content.ALL if content else Content.NONE),
                        result=pack(result, result_content(call, content=content)),
                        ids=self._take_ids(),
                        waiting_ms=self.speaking.buffer.speech_ms,
                        raised=raised,
                    )
                )
            )
            if self.ended is not None and _ends(call, result):
                self._tape.finish()

    def _take_ids(self) -> list[str]:
        ids = self._ids[:]
        self._ids.clear()
        return ids

    _depth = 0


def _ends(call: str, result: Any) -> bool:
    effects = result[1] if call == "pull" and result is not None else result
    return isinstance(effects, Sequence) and any(isinstance(e, EndSession) for e in effects)
