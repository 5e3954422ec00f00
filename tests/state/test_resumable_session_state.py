"""The same calls as in ``test_session_state``, over connections that get lost or are taken over."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.duplex.commands import AcknowledgeEvents
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.session_patch import AudioInputPatch, AudioPatch
from tests.state.test_session_state import SETTINGS, SessionModel

PCM = AudioInputPatch(format=FormatPatch(type="audio/pcm", rate=24000))


class ResumableModel(SessionModel):
    """Whatever was on its way gets lost, and comes once, or was taken back."""

    patch = DuplexPatch(audio=AudioPatch(input=PCM))
    # Room for all that 50 steps can say: nothing has to be dropped.
    settings = SETTINGS.model_copy(update={"output_buffer_bytes": 8 << 20})
    resumable = True
    ends = (None, "client_too_slow", "session_resume_expired", "stale_lease")

    def missing(self) -> bool:
        client = self.client
        return client.gone or client.broken or client.received < client.written

    def client_only_listens_from_now_on(self) -> None:
        """A duplex session never does."""

    @precondition(SessionModel.alive)
    @rule()
    def nothing_comes_through_any_more(self) -> None:
        self.client.broken = True

    @precondition(SessionModel.alive)
    @rule()
    def connection_is_lost(self) -> None:
        self.call.lose()

    @precondition(SessionModel.alive)
    @rule()
    def client_comes_back_or_takes_over(self) -> None:
        earlier = self.client
        was_gone = earlier.gone
        self.client = self.call.resume()
        assert was_gone or earlier.ended == "stale_lease"

    @precondition(SessionModel.alive)
    @rule(back=st.integers(0, 30))
    def client_acknowledges(self, back: int) -> None:
        seq = max(0, self.client.received - back)
        self.call.send(AcknowledgeEvents(server_event_seq=seq))

    @invariant()
    def what_is_kept_is_bounded_and_accounted(self) -> None:
        if not hasattr(self, "call"):
            return
        journal = self.call.session.journal
        assert journal is not None
        assert journal.held_bytes == journal.count_held()
        held = journal.held_bytes + self.call.machine.speaking.buffer.held_bytes
        assert held <= self.settings.output_buffer_bytes

    @invariant()
    def each_event_came_once_and_in_order(self) -> None:
        if not hasattr(self, "call"):
            return
        numbers = [delivery.seq for delivery in self.client.deliveries if delivery.seq]
        assert numbers == sorted(set(numbers))

    def teardown(self) -> None:
        """Come back to hear the end, if there is one to hear."""
        if not hasattr(self, "call"):
            return
        if self.alive():
            self.client = self.call.resume()
            super().teardown()
        assert len(self.call.manager) == 0
        assert len(self.call.wheel) == 0
        assert self.call.metrics.sessions_detached.value == 0
        tuple(self.call.manager.note_fills())
        assert self.call.metrics.journal_bytes.value == 0
        assert all(f.cancelled for f in self.call.engine.running.values())


TestResumableSessionState = ResumableModel.TestCase
