from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from duologue.duplex_plugins.cascaded.answer import BROKE_OFF, Answer
from duologue.duplex_plugins.cascaded.settings import CascadedSettings
from duologue.duplex_plugins.contract import (
    AppendToRequest,
    CallFunction,
    EndResponse,
    FinishRequest,
    PluginConfig,
    PluginEffect,
    ResponseOutcome,
    SayAudio,
    SayText,
    StartRequest,
)
from duologue.duplex_plugins.function_calls import BAD_CALL, LENGTH_LIMIT
from duologue.engines.payloads import (
    AudioChunk,
    SpeakText,
    SpeechMark,
    TokenUsage,
    ToolCallDelta,
    Tools,
    ToolSpec,
)

SETTINGS = CascadedSettings()


def make(config: PluginConfig | None = None, max_tokens: int = 100) -> Answer:
    return Answer("resp", "tts-1", config or PluginConfig(), SETTINGS, max_tokens)


def written(answer: Answer, *pieces: str) -> list[PluginEffect]:
    return [effect for piece in pieces for effect in answer.on_text(piece)]


def said(effects: Iterable[PluginEffect]) -> list[str]:
    return [effect.text for effect in effects if isinstance(effect, SayText)]


def clauses(effects: Iterable[PluginEffect]) -> Iterator[SpeakText]:
    for effect in effects:
        match effect:
            case (
                StartRequest(first=SpeakText() as clause)
                | AppendToRequest(payload=SpeakText() as clause)
            ):
                yield clause


def chunk(sample: int, samples: int = 100) -> AudioChunk:
    return AudioChunk(bytes(2 * samples), 24_000, sample)


def test_the_first_clause_starts_the_voice_and_its_text_goes_ahead() -> None:
    answer = make(PluginConfig(voice="eve", speed=1.5))
    text, start = written(answer, "Yes", ", it", " is.")
    assert text == SayText("resp", "Yes,")
    assert isinstance(start, StartRequest)
    assert start.pipeline == SETTINGS.tts_pipeline
    assert start.response_id == "resp"
    assert start.more_input
    assert start.credit == SETTINGS.speech_credit_ms
    assert start.first == SpeakText("Yes,", 4, "eve", 1.5, ((4, 4),))


def test_later_clauses_are_spoken_at_once_but_shown_when_their_sound_comes() -> None:
    answer = make()
    effects = written(answer, "Yes, it is. ", "And more. ")
    assert [clause.text_end for clause in clauses(effects)] == [4, 11, 21]
    assert said(effects) == ["Yes,"]
    assert said(answer.on_audio(chunk(0))) == []
    assert said(answer.on_mark(SpeechMark(4, 100))) == []
    assert list(answer.on_audio(chunk(100))) == [
        SayText("resp", " it is."),
        SayAudio("resp", bytes(200)),
    ]
    assert answer.text == "Yes, it is."


def test_marks_are_passed_on_and_never_lie_beyond_the_text() -> None:
    answer = make()
    written(answer, "Yes, it is. ")
    mark = SpeechMark(11, 300)
    assert list(answer.on_mark(mark)) == [
        SayText("resp", " it is."),
        SayAudio("resp", b"", (mark,)),
    ]


def test_what_is_spoken_is_normalised_and_tied_to_what_is_shown() -> None:
    answer = make()
    (clause,) = clauses(written(answer, "**It costs $5.** "))
    assert clause.text == "It costs five dollars."
    assert clause.text_end == len("**It costs $5.**")
    assert clause.word_ends == ((2, 4), (8, 10), (22, 16))


def test_word_places_count_from_the_start_of_the_answer() -> None:
    answer = make()
    second = list(clauses(written(answer, "Yes, it is. ")))[1]
    assert second.word_ends == ((2, 7), (6, 11))


def test_the_answer_ends_when_the_voice_has_said_all() -> None:
    answer = make()
    written(answer, "Yes, it is")
    rest = list(answer.on_written())
    assert [clause.text_end for clause in clauses(rest)] == [10]
    assert rest[-1] == FinishRequest("tts-1")
    usage = TokenUsage(20, 4, 10)
    answer.on_usage(usage)
    list(answer.on_mark(SpeechMark(10, 500)))
    assert list(answer.on_voice_ended()) == [EndResponse("resp", usage=usage)]


def test_an_answer_without_words_needs_no_voice() -> None:
    answer = make()
    assert written(answer, " ", "\n") == []
    assert list(answer.on_written()) == [EndResponse("resp")]


def test_an_answer_that_only_smiles_is_shown_and_silent() -> None:
    answer = make()
    written(answer, "😊")
    (clause,) = clauses(answer.on_written())
    assert (clause.text, clause.text_end) == ("", 1)


def test_an_answer_that_was_cut_at_its_limit_is_incomplete() -> None:
    answer = make(max_tokens=4)
    written(answer, "Yes, it is")
    answer.on_usage(TokenUsage(20, 4))
    list(answer.on_written())
    list(answer.on_mark(SpeechMark(10, 500)))
    (end,) = answer.on_voice_ended()
    assert isinstance(end, EndResponse)
    assert (end.outcome, end.reason) == (ResponseOutcome.INCOMPLETE, LENGTH_LIMIT)


@pytest.mark.parametrize("all_written", [True, False])
def test_a_voice_that_stops_too_early_fails_the_answer(all_written: bool) -> None:
    answer = make()
    written(answer, "Yes, it is")
    list(answer.on_mark(SpeechMark(4, 200)))
    if all_written:
        list(answer.on_written())
    assert list(answer.on_voice_ended()) == [EndResponse("resp", ResponseOutcome.FAILED, BROKE_OFF)]


def test_a_text_answer_goes_out_piece_by_piece_without_blank_ends() -> None:
    answer = make(PluginConfig(audio_out=False))
    effects = written(answer, " \n", " One", " ", "two.", "\n", "\n")
    assert said(effects) == ["One", " two."]
    assert list(answer.on_written()) == [EndResponse("resp")]
    assert answer.text == "One two."


# Function calls

OFFER = Tools((ToolSpec("look"), ToolSpec("go")))


def calling(
    *pieces: ToolCallDelta, tools: Tools = OFFER, usage: TokenUsage | None = None, text: str = ""
) -> list[PluginEffect]:
    """Return the last effects of a written answer with calls."""
    answer = make(PluginConfig(audio_out=False, tools=tools))
    effects = written(answer, text)
    for piece in pieces:
        answer.on_call(piece)
    if usage is not None:
        answer.on_usage(usage)
    return [*effects, *answer.on_written()]


def test_calls_are_made_whole_after_what_is_said() -> None:
    assert calling(
        ToolCallDelta(0, "x", "look", '{"at"'),
        ToolCallDelta(0, arguments=":1}"),
        ToolCallDelta(1, "y", "go"),
        text="One moment.",
    ) == [
        SayText("resp", "One moment."),
        CallFunction("resp", "0", "look", '{"at":1}'),
        CallFunction("resp", "1", "go", "{}"),
        EndResponse("resp"),
    ]


def test_calls_wait_until_the_voice_has_said_everything() -> None:
    answer = make(PluginConfig(tools=OFFER))
    written(answer, "One moment.")
    answer.on_call(ToolCallDelta(0, "", "look", "{}"))
    assert list(answer.on_written()) == [FinishRequest("tts-1")]
    list(answer.on_mark(SpeechMark(11, 100)))
    assert list(answer.on_voice_ended()) == [
        CallFunction("resp", "0", "look", "{}"),
        EndResponse("resp"),
    ]


@pytest.mark.parametrize(
    "piece",
    [
        ToolCallDelta(0, "", "fly", "{}"),
        ToolCallDelta(0, "", "", ""),
        ToolCallDelta(0, "", "look", "[1]"),
        ToolCallDelta(0, "", "look", '{"at":'),
        ToolCallDelta(0, "", "look", "[" * 100_000),
    ],
)
def test_a_call_that_cannot_be_made_fails_the_answer(piece: ToolCallDelta) -> None:
    assert calling(piece) == [EndResponse("resp", ResponseOutcome.FAILED, BAD_CALL)]


def test_half_a_call_at_the_length_limit_is_left_out() -> None:
    usage = TokenUsage(5, 9, cut=True)
    pieces = (ToolCallDelta(0, "", "look", "{}"), ToolCallDelta(1, "", "look", '{"at":'))
    assert calling(*pieces, usage=usage) == [
        CallFunction("resp", "0", "look", "{}"),
        EndResponse("resp", ResponseOutcome.INCOMPLETE, LENGTH_LIMIT, usage),
    ]


def test_what_may_not_be_called_is_not() -> None:
    piece = ToolCallDelta(0, "", "look", "{}")
    assert calling(piece, tools=Tools(OFFER.functions, "none")) == [EndResponse("resp")]
    assert calling(piece, tools=Tools()) == [EndResponse("resp")]


def test_without_parallel_calls_the_first_one_counts() -> None:
    pieces = (ToolCallDelta(0, "", "look", "{}"), ToolCallDelta(1, "", "go", "{}"))
    effects = calling(*pieces, tools=Tools(OFFER.functions, parallel=False))
    assert effects == [CallFunction("resp", "0", "look", "{}"), EndResponse("resp")]
