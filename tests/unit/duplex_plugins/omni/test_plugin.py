"""The policy, case by case."""

from __future__ import annotations

from dataclasses import replace

from duologue.core.audio import AudioFrame
from duologue.duplex_plugins.contract import (
    CallFunction,
    ConfigChanged,
    ConversationChanged,
    EndResponse,
    Interrupted,
    ItemView,
    PluginConfig,
    PluginEffect,
    PluginInput,
    RequestEnded,
    RequestFailed,
    RequestOutput,
    ResponseOutcome,
    ResponseRequested,
    SayAudio,
    SayText,
    StartRequest,
    Tick,
    Turn,
    TurnKind,
)
from duologue.duplex_plugins.omni.plugin import OmniPlugin
from duologue.duplex_plugins.omni.settings import OmniSettings
from duologue.duplex_plugins.retention import Retention
from duologue.engines.payloads import (
    AudioChunk,
    ChatMessage,
    ChatRequest,
    CodeFrames,
    SpeechMark,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    Tools,
    ToolSpec,
)

SETTINGS = OmniSettings(persona="Be kind.", recordings_s=2, max_output_tokens=50)
CONFIG = PluginConfig()
SECOND = b"\x01\x00" * 16_000


class Call:
    """A session by hand."""

    def __init__(self, settings: OmniSettings = SETTINGS) -> None:
        self.plugin = OmniPlugin(settings)
        self.state = self.plugin.open(CONFIG)
        self.items: tuple[ItemView, ...] = ()

    def step(self, item: PluginInput) -> list[PluginEffect]:
        return list(self.plugin.step(self.state, item))

    def hear(self, item_id: str, pcm: bytes = SECOND) -> None:
        """The person says something, which nobody writes down."""
        self.items += (ItemView(id=item_id, role="user", text=None),)
        self.step(ConversationChanged(self.items))
        frame = AudioFrame(pcm, 16_000, 0)
        self.step(Turn(TurnKind.COMMITTED, item_id, frame.samples, frame))

    def request(self, config: PluginConfig = CONFIG, name: str = "r1") -> list[PluginEffect]:
        return self.step(ResponseRequested(name, self.items, config))

    def asked(self, config: PluginConfig = CONFIG, name: str = "r1") -> ChatRequest:
        (started,) = self.request(config, name)
        assert isinstance(started, StartRequest)
        assert isinstance(started.first, ChatRequest)
        return started.first


def test_it_takes_turns_as_they_were_heard_and_pictures() -> None:
    able = OmniPlugin(OmniSettings(voices=("eve",), sees=True)).capabilities()
    assert (able.hears_turns, able.hears_audio, able.reads_transcripts) == (True, False, False)
    assert (able.voices, able.sees, able.input_rate_hz) == (("eve",), True, 16_000)


def test_a_turn_is_answered_by_one_request_that_hears_it() -> None:
    call = Call()
    call.hear("a")
    (started,) = call.request(PluginConfig(instructions="Be brief.", voice="chelsie"))
    assert started == StartRequest(
        key="answer-1",
        pipeline="qwen3_omni_chat",
        first=ChatRequest(
            (
                ChatMessage("system", "Be kind.\n\nBe brief."),
                ChatMessage("user", "", recordings=(SECOND,)),
            ),
            max_tokens=50,
            voice="chelsie",
        ),
        response_id="r1",
        credit=3050,
    )


def test_words_and_speech_are_said_as_they_come() -> None:
    call = Call()
    call.hear("a")
    call.request()
    mark, usage = SpeechMark(3, 2), TokenUsage(9, 2)
    outputs = (TextDelta("Hi."), AudioChunk(b"\1\0" * 2, 24_000, 0), mark, usage)
    said = [effect for each in outputs for effect in call.step(RequestOutput("answer-1", each))]
    assert said == [
        SayText("r1", "Hi."),
        SayAudio("r1", b"\1\0" * 2),
        SayAudio("r1", b"", (mark,)),
    ]
    assert call.step(RequestOutput("answer-1", CodeFrames(b"", 4))) == []
    assert call.step(RequestEnded("answer-1")) == [EndResponse("r1", usage=usage)]
    assert call.state.answers == {}


def test_functions_are_called_when_all_is_said() -> None:
    call = Call()
    call.hear("a")
    tools = Tools((ToolSpec("look"),))
    assert call.asked(PluginConfig(tools=tools)).tools == tools
    assert call.step(RequestOutput("answer-1", ToolCallDelta(0, name="look"))) == []
    assert call.step(RequestEnded("answer-1")) == [
        CallFunction("r1", "0", "look", "{}"),
        EndResponse("r1"),
    ]


def test_who_only_reads_is_answered_in_writing() -> None:
    call = Call()
    call.items = (ItemView(id="t", role="user", text="Hello."),)
    (started,) = call.request(PluginConfig(audio_out=False, max_output_tokens=7, temperature=0.5))
    assert isinstance(started, StartRequest)
    assert started.credit is None
    assert isinstance(started.first, ChatRequest)
    assert (started.first.voice, started.first.max_tokens) == (None, 7)
    assert started.first.temperature == 0.5


def test_only_so_much_is_kept_and_older_turns_are_read() -> None:
    call = Call()
    for item_id in ("a", "b", "c"):
        call.hear(item_id)
        call.items += (ItemView(id=f"{item_id}-answer", role="assistant", text="Yes."),)
    first, *others = call.items
    call.items = (replace(first, text="Written down."), *others)
    call.hear("d", SECOND * 5)
    messages = call.asked().messages
    assert [len(each.recordings) for each in messages if each.role == "user"] == [0, 1]
    assert messages[1].content == "Written down."
    assert messages[-1].recordings == (SECOND * 2,), "the end of what is too long by itself"


def test_what_was_deleted_is_not_heard_again() -> None:
    call = Call()
    call.hear("a")
    call.hear("b")
    call.items = call.items[1:]
    call.step(ConversationChanged(call.items))
    assert call.asked().messages[-1].recordings == (SECOND,)
    assert set(call.state.heard) == {"b"}


def test_a_turn_in_which_nothing_was_said_has_no_answer() -> None:
    call = Call()
    call.items = (ItemView(id="x", role="user", text=" "),)
    assert call.request() == [EndResponse("r1")]
    call.items = (ItemView(id="x", role="user", text=None, silence=True),)
    assert "silent" in call.asked().messages[-1].content
    call.items = ()
    assert call.asked(name="r2").messages == (ChatMessage("system", "Be kind."),)


def test_a_conversation_that_is_too_long_fails_where_nothing_may_be_left_out() -> None:
    call = Call(OmniSettings(persona="", prompt_tokens=100))
    call.items = tuple(
        ItemView(id=str(number), role="user" if number % 2 == 0 else "assistant", text="a" * 300)
        for number in range(5)
    )
    (end,) = call.request(PluginConfig(retention=Retention(allowed=False)))
    assert isinstance(end, EndResponse)
    assert (end.outcome, end.reason) == (ResponseOutcome.FAILED, "context_length_exceeded")
    assert len(call.asked().messages) == 1


def test_an_answer_that_fails_or_is_interrupted_is_forgotten() -> None:
    call = Call()
    call.hear("a")
    call.request()
    assert call.step(RequestFailed("answer-1", "stage_failed")) == [
        EndResponse("r1", ResponseOutcome.FAILED, "stage_failed")
    ]
    call.request(name="r2")
    call.request(name="r3")
    assert call.step(Interrupted("r2", "")) == []
    assert [each.response_id for each in call.state.answers.values()] == ["r3"]
    assert call.step(RequestOutput("answer-2", TextDelta("late"))) == []
    assert call.step(RequestEnded("answer-2")) == []


def test_other_inputs_change_nothing_or_the_configuration_alone() -> None:
    call = Call()
    config = PluginConfig(instructions="New.")
    assert call.step(ConfigChanged(config)) == []
    assert call.state.config is config
    assert call.step(Turn(TurnKind.STARTED, "a", 0)) == []
    assert call.step(Tick(1)) == []
