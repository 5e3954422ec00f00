from __future__ import annotations

import base64
import io
import wave
from typing import Any

import msgspec
import pytest

from duologue.engines.payloads import TokenUsage
from duologue.gateway.chat.checks import Wanted
from duologue.gateway.chat.turn import Ending, Sink
from duologue.gateway.chat.writing import ChunkedAnswer, Label, WholeAnswer, completion_usage
from duologue.gateway.speech.encoding import SpeechFile

LABEL = Label("chatcmpl-1", 100, "duologue", "audio_1", 3700)
ENDING = Ending("stop", TokenUsage(3, 4, cached_tokens=2, output_audio_tokens=1))
PCM = b"\x01\x00" * 2400


class Sent:
    """Remembers events."""

    def __init__(self) -> None:
        self.chunks: list[dict[str, Any]] = []

    async def send(self, event: msgspec.Struct) -> None:
        self.chunks.append(msgspec.json.decode(msgspec.json.encode(event)))

    @property
    def deltas(self) -> list[dict[str, Any]]:
        return [chunk["choices"][0]["delta"] for chunk in self.chunks if chunk["choices"]]


async def play(sink: Sink, *, speech: bool = False, call: bool = False) -> None:
    await sink.text("Hello ")
    if speech:
        await sink.speech(PCM)
    await sink.text("there.")
    if call:
        await sink.call(0, "c1", "add", '{"a":')
        await sink.call(0, "", "", "1}")


async def whole(wanted: Wanted, **what: bool) -> dict[str, Any]:
    answer = WholeAnswer(LABEL, wanted)
    await play(answer, **what)
    page = msgspec.json.encode(await answer.finish(ENDING))
    message: dict[str, Any] = msgspec.json.decode(page)["choices"][0]["message"]
    return message


async def chunked(wanted: Wanted, *, tells_usage: bool = False, **what: bool) -> Sent:
    sent = Sent()
    answer = ChunkedAnswer(sent, LABEL, wanted, tells_usage=tells_usage)
    await play(answer, **what)
    await answer.finish(ENDING)
    return sent


async def test_an_abandoned_answer_lets_go_of_its_encoder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[SpeechFile] = []
    monkeypatch.setattr(SpeechFile, "close", lambda file: closed.append(file))
    answer = WholeAnswer(LABEL, Wanted(audio=True, format="mp3"))
    answer.close()
    assert closed == []
    await answer.speech(PCM)
    answer.close()
    answer.close()
    assert len(closed) == 1


async def test_text_alone() -> None:
    message = await whole(Wanted())
    assert message == {"role": "assistant", "content": "Hello there.", "refusal": None}


async def test_calls_with_and_without_text_before_them() -> None:
    message = await whole(Wanted(), call=True)
    assert message["content"] == "Hello there."
    function = {"name": "add", "arguments": '{"a":1}'}
    assert message["tool_calls"] == [{"id": "c1", "type": "function", "function": function}]
    bare = WholeAnswer(LABEL, Wanted())
    await bare.call(0, "c1", "add", "")
    answer = await bare.finish(ENDING)
    assert answer.choices[0].message.content is None
    assert answer.choices[0].message.tool_calls[0].function.arguments == "{}"


@pytest.mark.parametrize("text", [True, False])
async def test_speech_with_and_without_its_text(text: bool) -> None:
    message = await whole(Wanted(text=text, audio=True, format="pcm16"), speech=True)
    assert message["content"] is None
    assert message["audio"] == {
        "id": "audio_1",
        "data": base64.b64encode(PCM).decode(),
        "expires_at": 3700,
        "transcript": "Hello there." if text else "",
    }


async def test_speech_is_a_file_of_the_format_asked_for() -> None:
    message = await whole(Wanted(audio=True, format="wav"), speech=True)
    assert base64.b64decode(message["audio"]["data"]).startswith(b"RIFF")


async def test_a_wav_file_says_how_long_it_is() -> None:
    message = await whole(Wanted(audio=True, format="wav"), speech=True)
    with wave.open(io.BytesIO(base64.b64decode(message["audio"]["data"]))) as file:
        assert file.getnframes() == len(PCM) // 2
        assert file.readframes(file.getnframes()) == PCM


async def test_an_answer_that_only_calls_is_not_spoken() -> None:
    answer = WholeAnswer(LABEL, Wanted(audio=True))
    await answer.call(0, "c1", "add", "{}")
    message = (await answer.finish(ENDING)).choices[0].message
    assert message.audio is msgspec.UNSET
    assert message.content is None


async def test_an_answer_without_words_is_a_file_all_the_same() -> None:
    answer = WholeAnswer(LABEL, Wanted(audio=True))
    message = (await answer.finish(ENDING)).choices[0].message
    assert message.audio is not msgspec.UNSET
    assert len(message.audio.data) > 44


async def test_chunks_of_text() -> None:
    sent = await chunked(Wanted())
    assert sent.deltas == [
        {"role": "assistant", "content": ""},
        {"content": "Hello "},
        {"content": "there."},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in sent.chunks] == [
        *[None] * 3,
        "stop",
    ]
    assert all("usage" not in chunk for chunk in sent.chunks)
    assert {chunk["id"] for chunk in sent.chunks} == {"chatcmpl-1"}


async def test_usage_comes_last_and_where_it_is_asked_for() -> None:
    sent = await chunked(Wanted(), tells_usage=True)
    assert [chunk["usage"] for chunk in sent.chunks[:-1]] == [None] * 4
    assert sent.chunks[-1]["choices"] == []
    assert sent.chunks[-1]["usage"]["total_tokens"] == 7


async def test_chunks_of_a_call_begin_with_its_name() -> None:
    sent = await chunked(Wanted(), call=True)
    assert [delta["tool_calls"] for delta in sent.deltas if "tool_calls" in delta] == [
        [
            {
                "index": 0,
                "id": "c1",
                "type": "function",
                "function": {"name": "add", "arguments": ""},
            }
        ],
        [{"index": 0, "function": {"arguments": '{"a":'}}],
        [{"index": 0, "function": {"arguments": "1}"}}],
    ]


async def test_a_call_without_text_begins_with_no_content() -> None:
    sent = Sent()
    answer = ChunkedAnswer(sent, LABEL, Wanted(), tells_usage=False)
    await answer.call(0, "c1", "add", "")
    assert sent.deltas[0] == {"role": "assistant", "content": None}
    assert len(sent.deltas) == 2


async def test_chunks_of_speech_with_its_text() -> None:
    sent = await chunked(Wanted(audio=True, format="pcm16"), speech=True)
    assert sent.deltas == [
        {"role": "assistant", "audio": {"id": "audio_1"}},
        {"audio": {"transcript": "Hello "}},
        {"audio": {"data": base64.b64encode(PCM).decode()}},
        {"audio": {"transcript": "there."}},
        {"audio": {"expires_at": 3700}},
        {},
    ]


async def test_chunks_of_speech_without_its_text() -> None:
    sent = await chunked(Wanted(text=False, audio=True, format="pcm16"), speech=True)
    assert sent.deltas == [
        {"role": "assistant", "audio": {"id": "audio_1"}},
        {"audio": {"data": base64.b64encode(PCM).decode()}},
        {"audio": {"expires_at": 3700}},
        {},
    ]


async def test_an_answer_without_anything_still_has_a_role() -> None:
    sent = Sent()
    await ChunkedAnswer(sent, LABEL, Wanted(), tells_usage=False).finish(ENDING)
    assert sent.deltas == [{"role": "assistant", "content": ""}, {}]


def test_usage_in_the_words_of_the_api() -> None:
    usage = completion_usage(ENDING.usage)
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (3, 4, 7)
    assert usage.prompt_tokens_details.cached_tokens == 2
    assert usage.completion_tokens_details.audio_tokens == 1
