"""The policy, case by case; ``test_plugin_invariants`` looks for orders nobody thought of."""

from __future__ import annotations

import pytest

from duologue.duplex_plugins.contract import (
    AdoptRequest,
    BeginResponse,
    ConfigChanged,
    ConversationChanged,
    EndResponse,
    ItemView,
    PluginConfig,
    ResponseOutcome,
    SayText,
    StartRequest,
    StopRequest,
    TranscriptKind,
    TurnKind,
)
from duologue.duplex_plugins.prompts.conversation import SILENCE
from duologue.engines.payloads import (
    TextDelta,
    TokenUsage,
)
from tests.unit.duplex_plugins.cascaded.caller import QUESTION, Call
from tests.unit.duplex_plugins.cascaded.session_model import Stage


def prompt(stage: Stage) -> list[str]:
    assert stage.request is not None
    return [f"{m.role}: {m.content}" for m in stage.request.messages]


def test_a_question_is_answered_in_text_and_sound() -> None:
    call = Call()
    call.say(QUESTION)
    call.request()
    assert prompt(call.llm())[-1] == f"user: {QUESTION}"
    call.answer("The capital", " of France", " is Paris.")
    response = call.responses["r1"]
    assert response.text == "The capital of France is Paris."
    assert response.marks == [31]
    assert response.end == EndResponse("r1", usage=TokenUsage(10, 3))
    assert call.stages == {}


def test_a_pause_starts_the_answer_and_the_request_adopts_it() -> None:
    call = Call()
    call.pause()
    key = call.llm().key
    assert call.output(key, TextDelta("Paris"), TextDelta(".")) == []
    effects = call.commit()
    assert AdoptRequest(key, "r1") in effects
    assert SayText("r1", "Paris.") in effects
    assert len(call.running("llm")) == 1
    call.end_stage(key)
    assert call.of("r1", "tts") is not None


def test_an_answer_that_was_finished_before_it_was_asked_for_is_said_at_once() -> None:
    call = Call()
    call.pause()
    key = call.llm().key
    call.output(key, TextDelta("Paris."), TokenUsage(9, 2))
    call.end_stage(key)
    effects = call.commit()
    assert not [effect for effect in effects if isinstance(effect, AdoptRequest)]
    voice = call.of("r1", "tts")
    assert voice is not None
    call.speak_all(voice.key)
    call.end_stage(voice.key)
    assert call.responses["r1"].end == EndResponse("r1", usage=TokenUsage(9, 2))


def test_when_the_person_goes_on_the_speculation_is_void() -> None:
    call = Call()
    call.pause("What is")
    key = call.llm().key
    assert call.turn(TurnKind.RESUMED) == [StopRequest(key)]
    call.turn(TurnKind.PAUSING)
    call.transcript(TranscriptKind.SPECULATIVE, QUESTION)
    assert prompt(call.llm())[-1] == f"user: {QUESTION}"


def test_a_turn_that_was_none_ends_the_speculation() -> None:
    call = Call()
    call.pause()
    key = call.llm().key
    assert call.turn(TurnKind.ABANDONED) == [StopRequest(key)]


def test_the_same_words_again_do_not_begin_again() -> None:
    call = Call()
    call.pause()
    assert call.transcript(TranscriptKind.SPECULATIVE, QUESTION) == []
    assert call.transcript(TranscriptKind.FINAL, QUESTION) == []


def test_a_final_transcript_that_differs_begins_again() -> None:
    call = Call()
    call.pause("What is the capital of Franz?")
    wrong = call.llm().key
    assert call.transcript(TranscriptKind.FINAL, QUESTION)[0] == StopRequest(wrong)
    right = call.llm()
    assert prompt(right)[-1] == f"user: {QUESTION}"
    assert AdoptRequest(right.key, "r1") in call.commit()


def test_speculation_is_adopted_only_for_the_same_prompt() -> None:
    call = Call()
    call.pause()
    speculation = call.llm().key
    call.config = PluginConfig(max_output_tokens=7)
    assert StopRequest(speculation) in call.commit()
    assert call.llm().request.max_tokens == 7


def test_a_failed_speculation_does_no_harm() -> None:
    call = Call()
    call.pause()
    assert call.fail_stage(call.llm().key) == []
    call.commit()
    call.answer("Paris.")
    assert call.responses["r1"].end.outcome is ResponseOutcome.COMPLETED


def test_noise_starts_nothing_and_ends_the_response_without_a_word() -> None:
    call = Call()
    call.pause("  ")
    assert call.running("llm") == [] or call.llm().request.max_tokens == 0
    assert call.commit("")[-1] == EndResponse("r1")
    assert call.responses["r1"].text == ""


def test_noise_after_a_turn_that_was_taken_up_again_answers_the_turn() -> None:
    call = Call()
    call.say("I need", "u1")
    call.say("", "u2")
    call.request()
    assert prompt(call.llm())[-1] == "user: I need"


def test_a_request_waits_for_the_transcript() -> None:
    call = Call()
    call.say(None)
    assert call.request() == []
    call.transcript(TranscriptKind.PARTIAL, "What")
    assert call.running("llm") == []
    call.transcript(TranscriptKind.FINAL, QUESTION)
    assert prompt(call.llm())[-1] == f"user: {QUESTION}"


def test_a_waiting_request_adopts_the_speculation_when_the_transcript_agrees() -> None:
    call = Call()
    call.pause()
    key = call.llm().key
    call.turn(TurnKind.COMMITTED)
    call.say(None)
    assert call.request() == []
    assert call.transcript(TranscriptKind.FINAL, QUESTION)[0] == AdoptRequest(key, "r1")


def test_a_request_that_is_withdrawn_while_it_waits_is_forgotten() -> None:
    call = Call()
    call.say(None)
    call.request()
    call.interrupt("r1")
    assert call.transcript(TranscriptKind.FINAL, QUESTION) == []


def test_a_turn_taken_up_again_is_answered_once_for_both_parts() -> None:
    call = Call()
    call.pause("I need")
    call.commit("I need")
    call.is_heard("r1", "")
    call.pause("a taxi.", "u2")
    speculation = call.llm()
    assert prompt(speculation)[-1] == "user: I need a taxi."
    assert AdoptRequest(speculation.key, "r2") in call.commit("a taxi.", "u2", "r2")
    assert call.stages.keys() == {speculation.key}


def test_an_interruption_leaves_a_clean_state_and_the_heard_words_in_the_prompt() -> None:
    call = Call()
    call.say("Tell me a story.")
    call.request()
    call.output(call.llm().key, TextDelta("Once upon a time, there was"))
    call.is_heard("r1", "Once upon")
    assert call.stages == {}
    call.pause("Stop.", "u2")
    assert prompt(call.llm())[-2:] == ["assistant: Once upon...", "user: Stop."]


def test_news_of_what_was_heard_counts_after_the_answer_is_over() -> None:
    call = Call()
    call.say(QUESTION)
    call.request()
    call.answer("The capital is Paris.")
    call.is_heard("r1", "The capital")
    call.pause("Sorry?", "u2")
    assert prompt(call.llm())[-2:] == ["assistant: The capital...", "user: Sorry?"]


def test_the_next_turn_is_guessed_with_the_whole_answer_in_it() -> None:
    call = Call()
    call.pause()
    call.commit()
    call.answer("Paris.")
    call.pause("And of Spain?", "u2")
    speculation = call.llm()
    assert prompt(speculation)[-3:] == [
        f"user: {QUESTION}",
        "assistant: Paris.",
        "user: And of Spain?",
    ]
    assert AdoptRequest(speculation.key, "r2") in call.commit("And of Spain?", "u2", "r2")


def test_a_failed_model_fails_the_response_and_stops_the_voice() -> None:
    call = Call()
    call.say(QUESTION)
    call.request()
    call.output(call.llm().key, TextDelta("Well, it is"))
    voice = call.of("r1", "tts")
    assert call.fail_stage(call.llm().key, "out_of_memory") == [
        StopRequest(voice.key),
        EndResponse("r1", ResponseOutcome.FAILED, "out_of_memory"),
    ]
    assert call.stages == {}


def test_a_failed_voice_fails_the_response_and_stops_the_model() -> None:
    call = Call()
    call.say(QUESTION)
    call.request()
    model = call.llm().key
    call.output(model, TextDelta("Well, it is"))
    voice = call.of("r1", "tts")
    assert call.fail_stage(voice.key, "replica_lost") == [
        StopRequest(model),
        EndResponse("r1", ResponseOutcome.FAILED, "replica_lost"),
    ]
    call.say("Again?", "u2")
    call.request("r2")
    call.answer("Yes.", response_id="r2")
    assert call.responses["r2"].end.outcome is ResponseOutcome.COMPLETED


def test_a_voice_that_breaks_off_stops_the_model() -> None:
    call = Call()
    call.say(QUESTION)
    call.request()
    model = call.llm().key
    call.output(model, TextDelta("Well, it is"))
    voice = call.of("r1", "tts")
    assert call.end_stage(voice.key) == [
        StopRequest(model),
        EndResponse("r1", ResponseOutcome.FAILED, "stage_failed"),
    ]


def test_a_text_response_uses_no_voice() -> None:
    call = Call()
    call.say(QUESTION)
    call.request(config=PluginConfig(audio_out=False))
    call.answer(" Paris", ".", "\n")
    assert call.responses["r1"].text == "Paris."
    assert not [key for key in call.used_keys if key.startswith("tts")]


def test_the_prompt_is_read_ahead_when_the_session_opens_and_not_twice() -> None:
    call = Call()
    call.give(ConfigChanged(PluginConfig()))
    assert call.llm().request.max_tokens == 0
    call.end_stage(call.llm().key)
    assert call.turn(TurnKind.STARTED) == []


def test_new_instructions_are_read_ahead() -> None:
    call = Call()
    call.give(ConfigChanged(PluginConfig()))
    first = call.llm().key
    effects = call.give(ConfigChanged(PluginConfig(instructions="Rhyme.")))
    assert effects[0] == StopRequest(first)
    assert "system: Rhyme." in prompt(call.llm())


def test_after_an_answer_the_model_reads_that_the_person_speaks() -> None:
    call = Call()
    call.pause()
    call.commit()
    call.answer("Paris.")
    call.turn(TurnKind.STARTED, "u2")
    assert call.llm().request.max_tokens == 0
    assert prompt(call.llm())[-2:] == ["assistant: Paris.", "user: "]
    call.end_stage(call.llm().key)
    assert call.turn(TurnKind.STARTED, "u2") == []


def test_what_the_person_has_said_so_far_is_read_and_not_twice() -> None:
    call = Call()
    call.turn(TurnKind.STARTED)
    call.end_stage(call.llm().key)
    call.transcript(TranscriptKind.PARTIAL, "What is the.")
    assert call.llm().request.max_tokens == 0
    assert prompt(call.llm())[-1] == "user: What is the"
    call.end_stage(call.llm().key)
    assert call.transcript(TranscriptKind.PARTIAL, "What is the") == []
    assert call.transcript(TranscriptKind.PARTIAL, "What is") == []
    call.transcript(TranscriptKind.PARTIAL, "What was the")
    assert prompt(call.llm())[-1] == "user: What was the"


def test_half_a_sentence_is_not_read_while_the_model_has_better_to_do() -> None:
    call = Call()
    call.turn(TurnKind.STARTED)
    reading = call.llm().key
    assert call.transcript(TranscriptKind.PARTIAL, "What is") == []
    call.end_stage(reading)
    call.turn(TurnKind.PAUSING)
    assert call.transcript(TranscriptKind.PARTIAL, "What is") == []
    call.transcript(TranscriptKind.SPECULATIVE, QUESTION)
    assert call.transcript(TranscriptKind.PARTIAL, "What is") == []


def test_for_a_client_that_does_not_ask_for_answers_half_a_sentence_is_not_read() -> None:
    call = Call()
    call.pause()
    call.turn(TurnKind.COMMITTED)
    call.turn(TurnKind.STARTED, "u2")
    for reading in call.running("llm"):
        call.end_stage(reading.key)
    assert call.transcript(TranscriptKind.PARTIAL, "Another", "u2") == []


def test_what_a_client_adds_is_read_while_the_person_speaks() -> None:
    call = Call()
    call.give(ConfigChanged(PluginConfig()))
    call.end_stage(call.llm().key)
    asked = ItemView(id="c", role="user", text="My name is Ann.")
    answered = ItemView(id="d", role="assistant", text="Hi Ann.")
    call.give(ConversationChanged((asked, answered)))
    call.turn(TurnKind.STARTED)
    assert prompt(call.llm())[-2:] == ["assistant: Hi Ann.", "user: "]


def test_reading_ahead_and_speculation_can_be_switched_off() -> None:
    call = Call(prefill=False, speculate=False)
    call.give(ConfigChanged(PluginConfig()))
    call.pause()
    assert call.stages == {}
    call.commit()
    assert len(call.stages) == 1


def test_a_client_that_does_not_ask_for_answers_gets_no_speculation() -> None:
    call = Call(prefill=False)
    call.pause()
    call.turn(TurnKind.COMMITTED)
    call.pause("Another turn.", "u2")
    assert call.stages == {}
    call.say("Hi", "u3")
    call.request()
    call.answer("Hello!")
    call.pause("And now?", "u4")
    assert len(call.stages) == 1


def test_while_an_answer_is_given_nothing_is_guessed() -> None:
    call = Call()
    call.say(QUESTION)
    call.request()
    call.pause("mm-hm", "u2")
    assert len(call.running("llm")) == 1


def test_two_responses_at_once_stay_apart() -> None:
    call = Call()
    call.say(QUESTION)
    call.request("r1")
    first = call.llm().key
    call.request("r2")
    (second,) = [stage.key for stage in call.running("llm") if stage.key != first]
    call.output(second, TextDelta("Two."))
    call.output(first, TextDelta("One."))
    assert call.responses["r1"].text == "One."
    assert call.responses["r2"].text == "Two."


def test_a_greeting_is_spoken_at_the_start_without_the_model() -> None:
    call = Call(greeting="Hello, this is Duologue. How can I help?", prefill=False)
    assert call.give(ConfigChanged(PluginConfig())) == [BeginResponse()]
    call.request()
    assert call.running("llm") == []
    voice = call.of("r1", "tts")
    assert voice is not None
    call.speak_all(voice.key)
    call.end_stage(voice.key)
    assert call.responses["r1"].text == "Hello, this is Duologue. How can I help?"
    assert call.responses["r1"].end.outcome is ResponseOutcome.COMPLETED
    assert BeginResponse() not in call.give(ConfigChanged(PluginConfig()))


def test_a_person_who_speaks_first_is_not_greeted() -> None:
    call = Call(greeting="Hello.", prefill=False)
    call.give(ConfigChanged(PluginConfig()))
    call.turn(TurnKind.STARTED)
    assert call.give(ConfigChanged(PluginConfig())) == []


@pytest.mark.parametrize("item", ["u1", "other"])
def test_late_output_of_stages_that_are_gone_is_ignored(item: str) -> None:
    call = Call()
    call.pause(item_id=item)
    key = call.llm().key
    call.turn(TurnKind.RESUMED, item)
    from duologue.duplex_plugins.contract import RequestEnded, RequestFailed, RequestOutput

    for late in (
        RequestOutput(key, TextDelta("x")),
        RequestEnded(key),
        RequestFailed(key, "broken"),
    ):
        assert call.give(late) == []


def test_capabilities_say_what_the_session_must_do() -> None:
    capabilities = Call().plugin.capabilities()
    assert capabilities.reads_transcripts
    assert not capabilities.hears_audio
    assert not capabilities.decides_turns


def test_effects_name_the_configured_pipelines() -> None:
    call = Call(llm_pipeline="llm", tts_pipeline="tts")
    call.say(QUESTION)
    effects = call.request()
    assert [effect.pipeline for effect in effects if isinstance(effect, StartRequest)] == ["llm"]


def test_a_person_who_says_nothing_for_too_long_is_spoken_to() -> None:
    call = Call()
    call.add(ItemView(id="u1", role="user", text="", silence=True))
    call.request()
    assert prompt(call.llm())[-1] == f"user: {SILENCE}"
    call.answer("Are you still there?")
    assert call.responses["r1"].text == "Are you still there?"
