"""The real language model and the real voice: answers, caches, cancels, and how speech is heard.

Times depend on the machine; what is asserted about them holds on a slow and busy one too.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import soxr

from duologue.artifacts.references import resolve_references
from duologue.artifacts.settings import ArtifactSettings
from duologue.artifacts.store import Store
from duologue.duplex_plugins.cascaded.prompt import chat_request, prefill_request
from duologue.duplex_plugins.cascaded.settings import CascadedSettings
from duologue.duplex_plugins.contract import ItemView, PluginConfig
from duologue.duplex_plugins.spoken.clauses import ClauseCutter, ClauseLimits
from duologue.duplex_plugins.spoken.normaliser import speakable
from duologue.engines.payloads import (
    AudioChunk,
    ChatMessage,
    ChatRequest,
    DecodeSpeech,
    SpeakText,
    SpeechMark,
    TextDelta,
    TokenUsage,
    ToolCall,
    ToolCallDelta,
    Tools,
    ToolSpec,
    Transcript,
)
from duologue.engines.pipeline import BUILT_IN_FOLDER, load_pipelines
from duologue.engines.runners.registry import RunnerRegistry
from tests.fakes.jobs import Jobs

pytestmark = [pytest.mark.models, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
SETTINGS = CascadedSettings()
CONFIG = PluginConfig()


def runner_of(pipeline: str) -> Jobs:
    """Load what a pipeline that ships runs on, as a worker would."""
    (stage,) = load_pipelines([BUILT_IN_FOLDER / f"{pipeline}.yaml"])[pipeline].stages
    os.environ.update(stage.env)
    settings = resolve_references(stage.settings, Store(ArtifactSettings()))
    jobs = Jobs(patience_s=120)
    jobs.runner = RunnerRegistry.installed().build(stage.runner, settings, jobs.wake).runner
    jobs.runner.warm_up()
    return jobs


@pytest.fixture(scope="module")
def llm() -> Jobs:
    return runner_of("llm")


@pytest.fixture(scope="module")
def tts() -> Jobs:
    return runner_of("tts")


@pytest.fixture(scope="module")
def asr() -> Jobs:
    return runner_of("asr")


@pytest.fixture(scope="module")
def scoring() -> Iterator[ModuleType]:
    """The checks that the benchmark uses, too."""
    sys.path.insert(0, str(ROOT / "bench"))
    yield importlib.import_module("scoring")
    sys.path.remove(str(ROOT / "bench"))


class Talk:
    """A conversation with the model, prompted as the plugin does."""

    def __init__(self, llm: Jobs, config: PluginConfig = CONFIG) -> None:
        self._llm = llm
        self._config = config
        self.items: list[ItemView] = []
        self.usage = TokenUsage(0, 0)

    def add(self, role: str, text: str, interrupted: bool = False) -> None:
        item_id = str(len(self.items))
        self.items.append(ItemView(id=item_id, role=role, text=text, interrupted=interrupted))

    def request(self) -> ChatRequest:
        return chat_request(self.items, self._config, SETTINGS)

    def ask(self, question: str) -> str:
        self.add("user", question)
        outputs = self._llm.outputs_of([self.request()])
        answer = "".join(o.text for o in outputs if isinstance(o, TextDelta)).strip()
        (self.usage,) = [o for o in outputs if isinstance(o, TokenUsage)]
        self.add("assistant", answer)
        return answer


def test_the_published_questions_are_answered(llm: Jobs, scoring: ModuleType) -> None:
    questions = scoring.load_questions()
    answers = {question: Talk(llm).ask(question.text) for question in questions}
    wrong = {q.text: a for q, a in answers.items() if not scoring.is_correct(q, a)}
    incoherent = {q.text: a for q, a in answers.items() if scoring.incoherence(q, a)}
    assert len(questions) == 20
    assert len(wrong) <= 5, wrong
    assert len(incoherent) <= 2, incoherent
    assert all(len(answer.split()) < 60 for answer in answers.values())


def test_a_follow_up_is_understood(llm: Jobs) -> None:
    talk = Talk(llm)
    assert "Paris" in talk.ask("What is the capital of France?")
    assert "Madrid" in talk.ask("And of Spain?")


def test_after_an_interruption_the_next_question_is_answered(llm: Jobs) -> None:
    talk = Talk(llm)
    talk.add("user", "Tell me a long story.")
    talk.add("assistant", "Once upon a time there was a king who lived in a", interrupted=True)
    answer = talk.ask("Stop. What is two plus three?")
    assert "five" in answer.lower() or "5" in answer


def test_the_clients_instructions_are_followed(llm: Jobs) -> None:
    config = PluginConfig(
        instructions="You are Ann, who works at the Green Hotel. Breakfast costs 12 euros."
    )
    assert "12" in Talk(llm, config).ask("How much is breakfast?")


def test_each_turn_reads_only_what_is_new(llm: Jobs) -> None:
    talk = Talk(llm)
    known = 0
    for question in ("What is red?", "And what is blue?", "Which one do you like?", "Why?"):
        talk.ask(question)
        assert talk.usage.cached_tokens >= known
        known = talk.usage.input_tokens + talk.usage.output_tokens - 3
    assert talk.usage.cached_tokens > 0.8 * talk.usage.input_tokens


def test_reading_ahead_leaves_little_to_read(llm: Jobs) -> None:
    config = PluginConfig(instructions="Your name is Bob, and you sell used cars in Ulm.")
    talk = Talk(llm, config)
    assert llm.outputs_of([prefill_request([], config, SETTINGS)])[-1].output_tokens == 0
    talk.ask("Hello there, who is this?")
    assert talk.usage.input_tokens - talk.usage.cached_tokens < 25


WEATHER = ToolSpec(
    "get_weather",
    "Get the current weather in a city.",
    '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}',
)
TIMER = ToolSpec(
    "set_timer",
    "Set a timer.",
    '{"type":"object","properties":{"minutes":{"type":"integer"}},"required":["minutes"]}',
)


def calls_in(outputs: Sequence[object]) -> list[tuple[str, object]]:
    """Name and arguments of each call."""
    return [
        (output.name, json.loads(output.arguments))
        for output in outputs
        if isinstance(output, ToolCallDelta)
    ]


def test_a_function_is_called_where_its_answer_is_needed_and_the_output_is_told(llm: Jobs) -> None:
    talk = Talk(llm, PluginConfig(tools=Tools((WEATHER,))))
    talk.add("user", "What is the weather in Paris?")
    outputs = llm.outputs_of([talk.request()])
    assert calls_in(outputs) == [("get_weather", {"city": "Paris"})]
    assert not [output for output in outputs if isinstance(output, TextDelta)]
    made = ToolCall("call_1", "get_weather", '{"city":"Paris"}')
    talk.items.append(ItemView(id="c", role="assistant", text="", call=made))
    found = '{"temperature_c": 21, "sky": "sunny"}'
    talk.items.append(ItemView(id="o", role="tool", text=found, call_id="call_1"))
    outputs = llm.outputs_of([talk.request()])
    answer = "".join(output.text for output in outputs if isinstance(output, TextDelta))
    assert calls_in(outputs) == []
    assert "21" in answer
    assert "{" not in answer
    assert "<" not in answer


def test_a_question_that_needs_no_function_is_answered_in_words(llm: Jobs) -> None:
    talk = Talk(llm, PluginConfig(tools=Tools((WEATHER,))))
    assert "Paris" in talk.ask("What is the capital of France?")


@pytest.mark.parametrize(
    ("tools", "name"),
    [
        (Tools((WEATHER,), "required"), "get_weather"),
        (Tools((WEATHER, TIMER), "required", "set_timer"), "set_timer"),
    ],
)
def test_a_model_that_must_call_does(llm: Jobs, tools: Tools, name: str) -> None:
    talk = Talk(llm, PluginConfig(tools=tools))
    talk.add("user", "Hello there, how are you?")
    ((called, arguments),) = calls_in(llm.outputs_of([talk.request()]))
    assert called == name
    assert isinstance(arguments, dict)


def test_two_conversations_at_once_keep_their_caches(llm: Jobs) -> None:
    one, two = Talk(llm), Talk(llm)
    for question in ("What do you know about cats?", "And what do they eat?"):
        for talk in (one, two):
            talk.ask(question)
    assert one.usage.cached_tokens > 0.7 * one.usage.input_tokens
    assert two.usage.cached_tokens > 0.7 * two.usage.input_tokens


def test_answers_are_written_at_the_same_time(llm: Jobs) -> None:
    requests = [
        ChatRequest((ChatMessage("user", f"Count from {n} to {n + 9}."),), 40) for n in (1, 20)
    ]
    jobs = [llm.open(request) for request in requests]
    pending = list(jobs)
    order = []
    while pending:
        for job in list(pending):
            outputs, done, error = llm.next(job)
            assert error is None
            order += [job.id] * bool(outputs)
            if done:
                pending.remove(job)
                llm.runner.close(job)
    first_end = max(i for i, key in enumerate(order) if key == jobs[0].id)
    second_start = order.index(jobs[1].id)
    assert second_start < first_end


def test_a_cancelled_answer_makes_room_within_moments(llm: Jobs) -> None:
    talk = Talk(llm)
    talk.ask("What is red?")
    talk.add("user", "And blue?")
    long = Talk(llm)
    long.add("user", "Tell me everything about this: " + "it is a long story, " * 40)
    for patience in (TextDelta, None):
        job = llm.open(long.request())
        llm.next(job)
        if patience is not None:
            llm.until(job, patience)
        llm.runner.close(job)
        started = time.monotonic()
        quick = llm.open(talk.request())
        llm.until(quick, TextDelta)
        waited_s = time.monotonic() - started
        llm.finish(quick)
        assert waited_s < 10


def test_text_comes_in_whole_characters(llm: Jobs) -> None:
    request = ChatRequest((ChatMessage("user", "Write only this: 日本語 é 🍕 🍕"),), 40)
    texts = [o.text for o in llm.outputs_of([request]) if isinstance(o, TextDelta)]
    assert "日" in "".join(texts) or "🍕" in "".join(texts)
    assert not [text for text in texts if "\ufffd" in text]


def test_a_prompt_that_is_too_long_fails_alone(llm: Jobs) -> None:
    request = ChatRequest((ChatMessage("user", "word " * 4000),), 10)
    _, error = llm.run(request)
    assert error is not None
    assert error.code == "context_length_exceeded"
    assert Talk(llm).ask("What is two plus two?")


def speak(tts: Jobs, text: str) -> tuple[bytes, list[SpeechMark]]:
    """Speak an answer cut into clauses, as the plugin does."""
    cutter = ClauseCutter(ClauseLimits(first_break=3, first_most=5))
    clauses = [*cutter.feed(text), *cutter.finish()]
    payloads = [SpeakText(speakable(clause.text).text, clause.end) for clause in clauses]
    outputs = tts.outputs_of(payloads)
    pcm = b"".join(o.pcm for o in outputs if isinstance(o, AudioChunk))
    return pcm, [o for o in outputs if isinstance(o, SpeechMark)]


ANSWERS = (
    "The capital of France is Paris.",
    "Sure, you could watch The Lion King. It is a classic family film.",
    "Leaves fall in autumn because there is less light, so trees save their water.",
    "Boil some water, pour it over a tea bag, wait three minutes, and enjoy.",
    "I'm sorry to hear that. Try to stretch gently, and rest for a while.",
    "It costs 12 euros, and breakfast is from 7 to 10 in the morning.",
)


def test_our_own_recogniser_understands_our_own_voice(
    tts: Jobs, asr: Jobs, scoring: ModuleType
) -> None:
    errors = words = 0
    for text in ANSWERS:
        pcm, _ = speak(tts, text)
        samples = np.frombuffer(pcm, "<i2")
        heard_samples = np.concatenate([soxr.resample(samples, 24_000, 16_000), np.zeros(4800)])
        audio = heard_samples.astype("<i2").tobytes()
        end = len(audio) // 2
        job = asr.open(AudioChunk(audio, 16_000), DecodeSpeech("final", end))
        (heard,) = [o.text for o in asr.until(job, Transcript) if isinstance(o, Transcript)]
        asr.runner.close(job)
        wrong, count = scoring.word_errors(text, heard)
        errors, words = errors + wrong, words + count
    assert errors / words <= 0.1


def test_speech_is_made_much_faster_than_it_is_heard(tts: Jobs) -> None:
    speak(tts, ANSWERS[0])
    started = time.process_time()
    pcm = b"".join(speak(tts, text)[0] for text in ANSWERS)
    assert time.process_time() - started < 0.1 * len(pcm) / 48_000


def test_the_last_mark_is_the_end_of_text_and_sound(tts: Jobs) -> None:
    for text in ANSWERS:
        pcm, marks = speak(tts, text)
        assert marks[-1] == SpeechMark(len(text), len(pcm) // 2)
