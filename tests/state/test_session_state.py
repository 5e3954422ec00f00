"""Is there an order of events that breaks a promise? Random people, clients and engines."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from duologue.duplex_plugins.scripted import ScriptedPlugin, ScriptedSettings
from duologue.engines.payloads import AudioChunk, EndOfTurn, SpeechMark, TextDelta
from duologue.protocol.commands import (
    CancelResponse,
    ClearAudio,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    ResponseParams,
    RetrieveItem,
    TruncateItem,
    UpdateSession,
)
from duologue.protocol.events import ErrorEvent, ItemAdded, SpeechStarted
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioPatch,
    SessionPatch,
    TurnDetectionPatch,
)
from duologue.sessions.settings import SessionSettings
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine

SETTINGS = SessionSettings(
    output_buffer_ms=2000, output_buffer_bytes=200_000, output_events=200, max_items=12
)
CLIENT_FAULTS = "invalid_request_error"


class SessionModel(RuleBasedStateMachine):
    """The invariants of the wire, of bounds and of lanes, in every order of events."""

    @initialize()
    def call_begins(self) -> None:
        engine = FakeEngine(pipelines=("scripted", "vad", "asr", "end_of_turn"))
        plugin = ScriptedPlugin(ScriptedSettings(lines=("one two three", "four five")))
        self.call = FakeCall(plugin, engine, SETTINGS)
        self.client = self.call.client
        self.gone: list[str] = []
        """Requests that have ended or were cancelled: a late engine may still speak for them."""

    def alive(self) -> bool:
        return self.client.ended is None

    # The person

    @precondition(alive)
    @rule(windows=st.integers(1, 12))
    def person_speaks(self, windows: int) -> None:
        self._while_watching_interruptions(lambda: self.call.say(windows))

    @precondition(alive)
    @rule(windows=st.integers(1, 12))
    def person_is_silent(self, windows: int) -> None:
        self._while_watching_interruptions(lambda: self.call.hush(windows))

    # The client

    @precondition(alive)
    @rule(out_of_band=st.booleans(), text=st.booleans())
    def client_wants_an_answer(self, out_of_band: bool, text: bool) -> None:
        params = ResponseParams(
            conversation="none" if out_of_band else "auto",
            output_modalities=("text",) if text else ("audio",),
        )
        self.call.send(CreateResponse(response=params))

    @precondition(alive)
    @rule()
    def client_cancels(self) -> None:
        active = self.call.machine.speaking.active
        self.call.send(CancelResponse())
        if active is not None:
            self.client.wire.interrupted(active.id)

    @precondition(alive)
    @rule(kind=st.sampled_from(["commit", "clear", "manual", "detect"]))
    def client_handles_input(self, kind: str) -> None:
        match kind:
            case "commit":
                self.call.send(CommitAudio())
            case "clear":
                self.call.send(ClearAudio())
            case "manual":
                self.call.send(_detection(None))
            case "detect":
                self.call.send(_detection(TurnDetectionPatch(type="server_vad")))

    @precondition(alive)
    @rule(data=st.data())
    def client_edits_the_conversation(self, data: st.DataObject) -> None:
        items = [event.item.id for event in self.client.of(ItemAdded)] or ["none"]
        item_id = data.draw(st.sampled_from(items))
        at_ms = data.draw(st.integers(-10, 5000))
        text = MessageItem(role="user", content=(InputText(text="hello"),))
        self.call.send(
            data.draw(
                st.sampled_from(
                    [
                        TruncateItem(item_id=item_id, audio_end_ms=at_ms),
                        DeleteItem(item_id=item_id),
                        RetrieveItem(item_id=item_id),
                        CreateItem(item=text, previous_item_id=item_id),
                        CreateItem(item=text),
                    ]
                )
            )
        )

    @rule()
    def client_stops_reading(self) -> None:
        self.client.reading = False

    @rule()
    def client_reads_again(self) -> None:
        self.client.reading = True
        self.client.read()

    @rule(seconds=st.floats(0, 20))
    def time_passes(self, seconds: float) -> None:
        self.call.clock.advance(seconds)
        if self.alive():
            assert self.call.machine.next_deadline() > self.call.clock.now() - 0.006

    # The engine

    @precondition(lambda self: self.call.engine.submitted)
    @rule(data=st.data(), size=st.integers(0, 4800))
    def engine_speaks_perhaps_late(self, data: st.DataObject, size: int) -> None:
        engine = self.call.engine
        request = data.draw(st.sampled_from(engine.submitted))
        known = request.id in engine.running or request.id in self.gone
        if not known:
            return
        payload = data.draw(
            st.sampled_from(
                [AudioChunk(b"\x01\x00" * size, 24000), TextDelta("word "), SpeechMark(5, 100)]
                if request.pipeline == "scripted"
                else [EndOfTurn(0.9, 0)]
            )
        )
        engine.output(request.id, payload)

    @precondition(lambda self: self.call.engine.running)
    @rule(data=st.data(), well=st.booleans())
    def engine_ends_a_request(self, data: st.DataObject, well: bool) -> None:
        engine = self.call.engine
        request_id = data.draw(st.sampled_from(sorted(engine.running)))
        self.gone.append(request_id)
        if engine.running[request_id].cancelled:
            engine.acknowledge_cancel(request_id)
        elif well:
            engine.complete(request_id)
        else:
            engine.fail(request_id)

    @precondition(lambda self: self.call.engine.of("asr"))
    @rule(text=st.sampled_from(["", "hello", "hello there"]))
    def recogniser_answers(self, text: str) -> None:
        self.call.transcribe(text)

    # What holds always

    @invariant()
    def held_output_is_bounded_and_accounted(self) -> None:
        if not hasattr(self, "call"):
            return
        buffer = self.call.machine.speaking.buffer
        assert buffer.count_held() == (buffer.held_bytes, buffer.held_events)
        # Ends of responses may exceed the limit by what the open responses need.
        assert buffer.held_bytes <= SETTINGS.output_buffer_bytes + 5 * 10 * 256
        assert buffer.held_events <= SETTINGS.output_events + 5 * 10

    @invariant()
    def the_server_never_blames_itself(self) -> None:
        if not hasattr(self, "call"):
            return
        assert all(e.error.type == CLIENT_FAULTS for e in self.client.of(ErrorEvent))
        assert self.client.ended in (None, "client_too_slow")

    @invariant()
    def one_response_of_the_conversation_at_a_time(self) -> None:
        if not hasattr(self, "call"):
            return
        active = [r for r in self.call.machine.speaking.all() if not r.out_of_band]
        assert len(active) <= 1

    @invariant()
    def no_work_without_an_open_response(self) -> None:
        if not hasattr(self, "call"):
            return
        lanes = {r.lane for r in self.call.machine.speaking.all()}
        running = [f for f in self.call.engine.of("scripted") if not f.cancelled]
        assert all(f.request.fence.lane in lanes for f in running)

    def teardown(self) -> None:
        """After the end nothing runs, and every response that began has ended on the wire."""
        if not hasattr(self, "call"):
            return
        if self.alive():
            for response in self.call.machine.speaking.all():
                self.call.send(CancelResponse(response_id=response.id))
            self.client.reading = True
            self.client.read()
            assert self.client.wire.open_responses == []
        self.call.session.close("closed")
        assert all(f.cancelled for f in self.call.engine.running.values())
        assert len(self.call.manager) == 0
        self.client.read()
        assert self.call.machine.speaking.buffer.held_bytes == 0

    def _while_watching_interruptions(self, act: object) -> None:
        active = self.call.machine.speaking.active
        before = len(self.client.of(SpeechStarted))
        act()  # type: ignore[operator]
        if active is not None and len(self.client.of(SpeechStarted)) > before:
            still = self.call.machine.speaking.get(active.id)
            if still is None:
                self.client.wire.interrupted(active.id)


def _detection(patch: TurnDetectionPatch | None) -> UpdateSession:
    audio = AudioPatch(input=AudioInputPatch(turn_detection=patch))
    return UpdateSession(session=SessionPatch(audio=audio))


TestSessionState = SessionModel.TestCase
