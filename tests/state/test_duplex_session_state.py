"""The same random calls in the duplex dialect: its clients also say what they have played."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from duologue.protocol.append_audio import AppendPlacedAudio
from duologue.protocol.commands import ClearOutputAudio, UpdateSession
from duologue.protocol.duplex.commands import (
    AcknowledgeEvents,
    AcknowledgePlayback,
    BargeIn,
    CommitTurn,
    Heartbeat,
)
from duologue.protocol.duplex.events import HeartbeatAcknowledged, PlaybackAcknowledged
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.response_events import ResponseCreated
from duologue.protocol.session_patch import SessionPatch
from tests.state.test_session_state import SessionModel


class DuplexSessionModel(SessionModel):
    """What holds for each call, and what acknowledgements may and may not do."""

    patch = DuplexPatch()

    @precondition(SessionModel.alive)
    @rule(
        which=st.integers(0, 5),
        played_ms=st.integers(0, 3000),
        committed_ms=st.none() | st.integers(0, 3000),
        truncate=st.booleans(),
        named=st.booleans(),
    )
    def client_says_what_it_played(
        self,
        which: int,
        played_ms: int,
        committed_ms: int | None,
        truncate: bool,
        named: bool,
    ) -> None:
        known = [event.response.id for event in self.client.of(ResponseCreated)] or ["none"]
        before = len(self.client.of(PlaybackAcknowledged))
        self.call.send(
            AcknowledgePlayback(
                played_ms=played_ms,
                committed_ms=committed_ms,
                truncate=truncate,
                response_id=known[-1 - which % len(known)] if named else None,
            )
        )
        for told in self.client.of(PlaybackAcknowledged)[before:]:
            cursor = told.event.playback
            assert 0 <= cursor.played_ms <= cursor.sent_ms <= cursor.generated_ms
            assert 0 <= cursor.committed_ms <= cursor.generated_ms
            assert not told.event.history_committed or cursor.committed_ms == cursor.generated_ms

    @precondition(SessionModel.alive)
    @rule(policy=st.sampled_from(["ack_only", "commit_all_on_done"]), auto=st.booleans())
    def client_chooses_what_is_remembered(self, policy: str, auto: bool) -> None:
        patch = DuplexPatch(playback_commit_policy=policy, auto_response=auto)
        self.call.send(UpdateSession(session=patch))

    @precondition(SessionModel.alive)
    @rule(what=st.sampled_from([BargeIn(), ClearOutputAudio(), CommitTurn(), Heartbeat()]))
    def client_takes_part(self, what) -> None:
        active = self.call.machine.speaking.active
        self.call.send(what)
        stopped = active is not None and self.call.machine.speaking.get(active.id) is None
        if stopped and self.client.reading and not isinstance(what, CommitTurn):
            self.client.wire.interrupted(active.id)

    @precondition(SessionModel.alive)
    @rule(start=st.integers(0, 6000), samples=st.integers(0, 3000))
    def client_sends_audio_again(self, start: int, samples: int) -> None:
        self.call.send(AppendPlacedAudio(audio=bytes(2 * samples), start_sample=start))

    @precondition(SessionModel.alive)
    @rule()
    def client_only_listens_from_now_on(self) -> None:
        """A duplex session always answers."""
        self.call.send(UpdateSession(session=SessionPatch(type="transcription")))
        assert self.call.machine.config.kind == "realtime"

    @precondition(SessionModel.alive)
    @rule(seq=st.integers(-1, 200))
    def client_acknowledges_events(self, seq: int) -> None:
        self.call.send(AcknowledgeEvents(server_event_seq=seq))

    @invariant()
    def the_input_position_only_grows(self) -> None:
        if hasattr(self, "call"):
            told = [event.next_sample for event in self.client.of(HeartbeatAcknowledged)]
            assert told == sorted(told)


TestDuplexSessionState = DuplexSessionModel.TestCase
TestDuplexSessionState.settings = settings(max_examples=settings().max_examples // 2)
