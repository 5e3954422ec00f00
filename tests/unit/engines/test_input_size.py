from __future__ import annotations

import pytest

from duologue.engines.input_size import INPUT_OVERHEAD_BYTES, input_bytes
from duologue.engines.media_payloads import DrawImage, MakeSound, MakeVideo
from duologue.engines.payloads import (
    AudioChunk,
    ChatMessage,
    ChatRequest,
    DecodeSpeech,
    LockstepStart,
    Payload,
    SpeakText,
    TextDelta,
    ToolCall,
    Tools,
    ToolSpec,
)


@pytest.mark.parametrize(
    ("payload", "contents"),
    [
        (AudioChunk(bytes(640), 16_000), 640),
        (TextDelta("seven ch"), 8),
        (SpeakText("a clause", 8), 8),
        (DecodeSpeech("final", 0), 0),
        (LockstepStart("be kind"), 7),
        (DrawImage("a cat", 64, 48, 4, 3.5, 7, negative="dog", image=b"12", mask=b"3"), 11),
        (MakeVideo("waves", 64, 48, 9, 16, 4, 3.5, 7, image=b"1", source=b"123"), 9),
        (MakeSound("rain", 2.5, 4, 3.5, 7), 4),
    ],
)
def test_an_input_counts_for_its_contents_and_a_little(payload: Payload, contents: int) -> None:
    assert input_bytes(payload) == contents + INPUT_OVERHEAD_BYTES


def test_a_prompt_counts_with_all_its_messages() -> None:
    prompt = ChatRequest((ChatMessage("system", "be kind"), ChatMessage("user", "hi")), 10)
    assert input_bytes(prompt) == 9 + 3 * INPUT_OVERHEAD_BYTES


def test_a_prompt_counts_with_its_calls_pictures_and_tools() -> None:
    call = ChatMessage("assistant", "", calls=(ToolCall("c", "f", "{}"),))
    picture = ChatMessage("user", "", images=("data:image/png;base64,AA==",))
    tools = Tools((ToolSpec("f", "four", "{}"),))
    prompt = ChatRequest((call, picture), 10, tools=tools)
    assert input_bytes(prompt) == 5 * INPUT_OVERHEAD_BYTES + 2 + 26 + 6
