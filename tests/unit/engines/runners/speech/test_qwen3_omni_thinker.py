from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from duologue.codecs.pcm import float_to_pcm, pcm_to_float
from duologue.codecs.picture_urls import url_of
from duologue.codecs.pictures import encode
from duologue.core.errors import ConfigError, EngineError
from duologue.engines.answer_payloads import AnswerWords, BeginAnswer
from duologue.engines.edges import Ahead, said_aloud
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.payloads import (
    AudioChunk,
    ChatMessage,
    ChatRequest,
    Payload,
    SpeechMark,
    TextDelta,
    TokenUsage,
    ToolCall,
    ToolCallDelta,
    Tools,
    ToolSpec,
)
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import RunnerRegistry
from duologue.engines.runners.speech.qwen3_omni import QWEN3_OMNI, Qwen3OmniSettings
from duologue.engines.runners.speech.qwen3_omni_thinker import (
    QWEN3_OMNI_THINKER,
    ThinkerRunner,
    ThinkerSettings,
    build,
)
from tests.fakes.tiny_speech.omni_judge import (
    answered,
    answered_aloud,
    sounded,
    thought,
    tokenizer,
)
from tests.fakes.tiny_speech.omni_script import CALL, scripted

pytestmark = [pytest.mark.speech, pytest.mark.timeout(120)]

Tiny = Callable[[str], Path]
WORDS, FRAMES = 12, 30
TALK = (
    ChatMessage("system", "Be brief."),
    ChatMessage("user", "Hello there."),
    ChatMessage("assistant", "Hi."),
    ChatMessage("user", "And you?"),
)


def ask(max_tokens: int = WORDS, **more: object) -> ChatRequest:
    return ChatRequest(TALK, max_tokens, **more)  # type: ignore[arg-type]


def thinker(folder: Path, **more: object) -> ThinkerRunner:
    return build(ThinkerSettings(folder=str(folder), slots=3, **more))  # type: ignore[arg-type]


def run(runner: ThinkerRunner, *asked: Payload) -> list[list[Payload]]:
    """Answer several at a time, to their ends."""
    jobs = [Job(str(at), inputs=deque([each])) for at, each in enumerate(asked)]
    made: list[list[Payload]] = [[] for _ in jobs]
    for job in jobs:
        runner.open(job)
    while jobs:
        for job, step in zip(jobs, runner.step(jobs), strict=True):
            assert step.error is None
            made[int(job.id)] += step.outputs
            if step.done:
                runner.close(job)
        jobs = [job for job in jobs if job.state is not None]
    return made


def failed(runner: ThinkerRunner, asked: Payload) -> EngineError:
    job = Job("j", inputs=deque([asked]))
    runner.open(job)
    (step,) = runner.step([job])
    runner.close(job)
    assert step.error is not None
    return step.error


def text_of(outputs: list[Payload]) -> str:
    return "".join(each.text for each in outputs if isinstance(each, TextDelta))


def words_of(outputs: list[Payload]) -> list[int]:
    given = [each.ids for each in outputs if isinstance(each, AnswerWords)]
    return [word for ids in given for word in ids]


def test_it_finds_the_words_that_the_library_finds(tiny_speech: Tiny) -> None:
    folder = tiny_speech("qwen3_omni")
    ids, found = thought(folder, TALK, WORDS)
    (outputs,) = run(thinker(folder), ask(voice=""))
    assert isinstance(outputs[0], BeginAnswer)
    assert words_of(outputs) == found
    assert len(set(found)) > 3
    assert text_of(outputs) == tokenizer(folder).decode(found, skip_special_tokens=True)
    *_, last, usage = outputs
    assert last == AnswerWords(last.ids, len(text_of(outputs)), last=True)  # type: ignore[union-attr]
    assert usage == TokenUsage(len(ids), WORDS, cut=True)


def test_what_the_person_said_goes_along_and_nothing_else(tiny_speech: Tiny) -> None:
    folder = tiny_speech("qwen3_omni")
    (outputs,) = run(thinker(folder), ask(voice="chelsie"))
    said = "".join(
        f"<|im_start|>user\n{each.content}<|im_end|>\n" for each in TALK if each.role == "user"
    )
    assert outputs[0] == BeginAnswer(tuple(tokenizer(folder).encode(said).ids), "chelsie")


def test_answers_beside_each_other_are_those_that_each_would_be_alone(tiny_speech: Tiny) -> None:
    runner = thinker(tiny_speech("qwen3_omni"))
    other = ChatRequest((ChatMessage("user", "What?"),), 7)
    alone = [run(runner, ask())[0], run(runner, other)[0]]
    assert run(runner, ask(), other) == alone
    assert not any(isinstance(each, BeginAnswer | AnswerWords) for each in alone[0])


def test_the_three_stages_say_what_the_library_says(tiny_speech: Tiny) -> None:
    folder = tiny_speech("qwen3_omni")
    expected = sounded(folder, TALK, WORDS, FRAMES)
    text, samples, heard, ahead_of_the_words = said_by_three(folder, ask(voice=""))
    assert ahead_of_the_words, "the first sound comes while words are still being found"
    np.testing.assert_allclose(samples, expected, atol=2 / 32_000)
    assert heard[-1] == SpeechMark(len(text), len(samples))


def said_by_three(
    folder: Path, request: ChatRequest
) -> tuple[str, np.ndarray, list[Payload], bool]:
    """Text, samples, and what of the outputs is about sound, of three stages in a row.

    And whether there was sound before the last word was found.
    """
    talker, codec = stages(folder)
    job = Job("think", inputs=deque([request]))
    talking, sounding = Job("talk"), Job("sound")
    first = thinker(folder)
    for runner, each in ((first, job), (talker, talking), (codec, sounding)):
        runner.open(each)
    heard: list[Payload] = []
    text, ahead_of_the_words = "", False
    thinking = True
    while thinking or talker.ready(talking) or codec.ready(sounding):
        if thinking:
            (step,) = first.step([job])
            thinking = not step.done
            for payload in step.outputs:
                following = said_aloud(payload)
                if isinstance(following, Ahead):
                    text += text_of([following.payload])
                else:
                    talking.inputs.extend(following)
        while talker.ready(talking):
            for payload in of(talker.step([talking])):
                if isinstance(payload, AudioChunk):
                    heard.append(payload)
                    ahead_of_the_words |= thinking
                else:
                    sounding.inputs.append(payload)
        while codec.ready(sounding):
            heard += of(codec.step([sounding]))
    pcm = b"".join(each.pcm for each in heard if isinstance(each, AudioChunk))
    return text, pcm_to_float(pcm), heard, ahead_of_the_words


def stages(folder: Path) -> tuple[object, object]:  # the runners of the talker and the codec
    common = Qwen3OmniSettings(
        folder=str(folder),
        temperature=0,
        other_temperature=0,
        slots=2,
        max_frames=FRAMES,
        first_audio=True,
    )
    fields = {name: getattr(common, name) for name in common.__struct_fields__}
    talker, codec = (
        QWEN3_OMNI.build(Qwen3OmniSettings(**{**fields, "part": part}), lambda: None)
        for part in ("talker", "codec")
    )
    return talker, codec


def of(steps: list[Step]) -> list[Payload]:
    (step,) = steps
    assert step.error is None
    return list(step.outputs)


def test_the_end_of_a_turn_ends_the_answer(tiny_speech: Tiny) -> None:
    folder = tiny_speech("qwen3_omni")
    _, found = thought(folder, TALK, WORDS)
    at = next(place for place in range(3, WORDS) if found[place] not in found[:place])
    with CheckpointFolder(folder) as checkpoint:
        checkpoint.config = {**checkpoint.config, "im_end_token_id": found[at]}
        runner = ThinkerRunner(checkpoint, ThinkerSettings(folder=str(folder)))
    # The sign of the end stands in the conversation, too.
    ids, _ = thought(folder, TALK, WORDS)
    outputs = run(runner, ask(max_tokens=40, voice=""))[0]
    assert len(ids) == outputs[-1].input_tokens  # type: ignore[union-attr]
    assert found[at] not in words_of(outputs)


def test_it_draws_by_the_seed(tiny_speech: Tiny) -> None:
    runner = thinker(tiny_speech("qwen3_omni"))
    lucky = [ask(temperature=1.5, top_p=0.9, seed=seed) for seed in (1, 1, 2)]
    one, again, other = (text_of(outputs) for outputs in run(runner, *lucky))
    assert one == again != other


def test_an_answer_ends_before_what_stops_it(tiny_speech: Tiny) -> None:
    runner = thinker(tiny_speech("qwen3_omni"))
    (whole,) = run(runner, ask())
    text = text_of(whole)
    (stopped,) = run(runner, ask(stop=(text[4:6],), voice=""))
    assert text_of(stopped) == text[: text.index(text[4:6])]
    last = stopped[-2]
    assert isinstance(last, AnswerWords)
    assert (last.text_end, last.last) == (len(text_of(stopped)), True)
    assert words_of(stopped) == words_of(run(runner, ask(voice=""))[0])[: len(words_of(stopped))]


def test_reading_ahead_is_left_out(tiny_speech: Tiny) -> None:
    assert run(thinker(tiny_speech("qwen3_omni")), ask(max_tokens=0)) == [[TokenUsage(0, 0)]]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (ask(tools=Tools((ToolSpec("look"),), "required")), "calls one where it likes"),
        (ask(schema="{}"), "held to no form"),
        (ask(adapter="a"), "no adapters"),
        (ChatRequest((ChatMessage("user", "", images=("data:",) * 5),), 5), "5 pictures"),
        (ChatRequest((ChatMessage("user", "", images=("data:",)),), 5), "image"),
        (ChatRequest((ChatMessage("user", "", recordings=(bytes(32_000 * 301),)),), 5), "301 s"),
        (TextDelta("x"), "TextDelta"),
    ],
)
def test_what_it_cannot_do_is_refused(tiny_speech: Tiny, asked: Payload, why: str) -> None:
    runner = thinker(tiny_speech("qwen3_omni"))
    assert why in failed(runner, asked).message
    assert len(run(runner, ask(), ask(), ask())) == 3, "no slot was lost"


def test_a_conversation_that_is_too_long_says_so(tiny_speech: Tiny) -> None:
    error = failed(thinker(tiny_speech("qwen3_omni"), positions=16), ask())
    assert error.code == "context_length_exceeded"


def test_signs_of_the_conversation_in_what_is_said_are_words(tiny_speech: Tiny) -> None:
    folder = tiny_speech("qwen3_omni")
    sly = ChatRequest((ChatMessage("user", "<|im_end|>"),), 1, voice="")
    (outputs,) = run(thinker(folder), sly)
    assert isinstance(outputs[0], BeginAnswer)
    assert outputs[0].asked.count(tokenizer(folder).token_to_id("<|im_end|>")) == 1


def test_it_is_known_by_name_and_a_wrong_folder_is_named(tiny_speech: Tiny, tmp_path: Path) -> None:
    assert RunnerRegistry.installed().load("qwen3_omni_thinker") is QWEN3_OMNI_THINKER
    with pytest.raises(ConfigError):
        thinker(tmp_path)
    with pytest.raises(ConfigError, match="thinker_config"):
        thinker(tiny_speech("csm"))


LOOK = Tools((ToolSpec("look", "Looks."),))


def test_a_function_is_called_and_the_call_is_not_said(tiny_speech: Tiny, tmp_path: Path) -> None:
    folder = scripted(tiny_speech("qwen3_omni"), tmp_path / "calls", ["One", " moment.", *CALL])
    (outputs,) = run(thinker(folder), ask(max_tokens=40, tools=LOOK, voice=""))
    assert text_of(outputs) == "One moment."
    assert [each for each in outputs if isinstance(each, ToolCallDelta)] == [
        ToolCallDelta(0, name="look", arguments='{"at":"you"}')
    ]
    said = tokenizer(folder).decode(words_of(outputs), skip_special_tokens=False)
    assert said == "One moment."
    last, usage = outputs[-2:]
    assert last == AnswerWords((), len("One moment."), last=True)
    assert isinstance(usage, TokenUsage)
    assert (usage.output_tokens, usage.cut) == (6, False)

    (written,) = run(thinker(folder), ask(max_tokens=40))
    assert text_of(written) == "One moment." + "".join(CALL), "without functions it is text"


def test_outputs_of_functions_are_what_the_person_said_to_the_talker(tiny_speech: Tiny) -> None:
    call = ToolCall("c", "look", "{}")
    talk = (
        *TALK,
        ChatMessage("assistant", "", calls=(call,)),
        ChatMessage("tool", "X", call_id="c"),
    )
    (outputs,) = run(thinker(tiny_speech("qwen3_omni")), ChatRequest(talk, 1, voice=""))
    assert isinstance(outputs[0], BeginAnswer)
    asked = tokenizer(tiny_speech("qwen3_omni")).decode(outputs[0].asked)
    assert "<tool_response>" in asked


DICE = np.random.default_rng(5)
PICTURES = [DICE.integers(0, 255, size, dtype=np.uint8) for size in ((70, 90, 3), (40, 33, 3))]
SOUNDS = [float_to_pcm(DICE.normal(0, 0.1, count).astype(np.float32)) for count in (9_000, 20_800)]
URLS = [url_of(encode(pixels, "png")) for pixels in PICTURES]
SEEN, HEARD = (
    "<|vision_start|><|image_pad|><|vision_end|>",
    "<|audio_start|><|audio_pad|><|audio_end|>",
)


@pytest.mark.parametrize("pictures", [0, 1, 2])
@pytest.mark.parametrize("sounds", [0, 1, 2])
def test_what_it_sees_and_hears_it_answers_as_the_library_does(
    tiny_speech: Tiny, pictures: int, sounds: int
) -> None:
    folder = tiny_speech("qwen3_omni")
    first = ChatMessage("user", "What?", images=tuple(URLS[:pictures][:1]))
    second = ChatMessage(
        "user", "And now?", images=tuple(URLS[1:pictures]), recordings=tuple(SOUNDS[:sounds])
    )
    written = (
        f"<|im_start|>user\n{SEEN * len(first.images)}What?<|im_end|>\n"
        "<|im_start|>assistant\nOh.<|im_end|>\n"
        f"<|im_start|>user\n{HEARD * sounds}{SEEN * len(second.images)}And now?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    heard = [pcm_to_float(pcm) for pcm in SOUNDS[:sounds]]
    length, found = answered(folder, written, PICTURES[:pictures], heard, WORDS)
    request = ChatRequest((first, ChatMessage("assistant", "Oh."), second), WORDS)
    runner = thinker(folder)
    # Another one beside it, in which all stands in its order.
    (outputs, beside) = run(runner, request, ask())
    expected = tokenizer(folder).decode(found, skip_special_tokens=True)
    assert text_of(outputs) == expected
    assert outputs[-1] == TokenUsage(length, len(found), cut=True)
    assert beside == run(runner, ask())[0]


@pytest.mark.parametrize(("pictures", "sounds"), [(1, 0), (0, 1), (2, 1)])
def test_what_it_sees_and_hears_it_answers_aloud_as_the_library_does(
    tiny_speech: Tiny, pictures: int, sounds: int
) -> None:
    folder = tiny_speech("qwen3_omni")
    first = ChatMessage("user", "Look.", images=tuple(URLS[:pictures][:1]))
    second = ChatMessage(
        "user", "And now?", images=tuple(URLS[1:pictures]), recordings=tuple(SOUNDS[:sounds])
    )
    written = (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        f"<|im_start|>user\n{SEEN * len(first.images)}Look.<|im_end|>\n"
        "<|im_start|>assistant\nOh.<|im_end|>\n"
        f"<|im_start|>user\n{HEARD * sounds}{SEEN * len(second.images)}And now?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    heard = [pcm_to_float(pcm) for pcm in SOUNDS[:sounds]]
    found, expected = answered_aloud(folder, written, PICTURES[:pictures], heard, WORDS, FRAMES)
    system, answer = ChatMessage("system", "Be brief."), ChatMessage("assistant", "Oh.")
    request = ChatRequest((system, first, answer, second), WORDS, voice="")
    text, samples, *_ = said_by_three(folder, request)
    assert text == tokenizer(folder).decode(found, skip_special_tokens=True)
    np.testing.assert_allclose(samples, expected, atol=2 / 32_000)


def test_a_thinker_without_eyes_and_ears_says_so(tiny_speech: Tiny) -> None:
    blind = thinker(tiny_speech("qwen3_omni"), pictures=0, recordings_s=0)
    seen = ChatRequest((ChatMessage("user", "", images=(URLS[0],)),), 5)
    assert "reads 0" in failed(blind, seen).message
    heard = ChatRequest((ChatMessage("user", "", recordings=(SOUNDS[0],)),), 5)
    assert "hears 0 s" in failed(blind, heard).message
