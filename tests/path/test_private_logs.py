"""No line of a whole call, at the most talkative level, holds what was said or who may come in."""

from __future__ import annotations

import base64
import io
import json

import aiohttp
import pytest

from duologue.app import running_app
from duologue.telemetry import configure_logging
from tests.fakes.small_gateway import API_KEY, LINE, small_settings
from tests.fakes.taped_call import SECRETS, interrupted_call

INSTRUCTIONS = "You are the keeper of a lighthouse in Brittany."
QUESTION = "Which of my three daughters should inherit the boat?"
AUDIO = base64.b64encode(bytes(range(256)) * 8).decode()
WRONG_KEY = "sk-this-key-belongs-to-somebody-else"
ARGUMENTS = {"diagnosis": "appendicitis"}


@pytest.fixture
def lines() -> io.StringIO:
    """Return where all log lines of the process go."""
    stream = io.StringIO()
    configure_logging(level="debug", log_format="json", stream=stream)
    return stream


def assert_private(lines: io.StringIO, *private: str, events: set[str]) -> None:
    text = lines.getvalue()
    written = [json.loads(line) for line in text.splitlines()]
    assert events <= {line["event"] for line in written}
    # Words, since a line may quote a part.
    words = {word for said in private for word in said.replace(".", " ").split() if len(word) > 6}
    assert words
    found = {word for word in words if word.lower() in text.lower()}
    assert found == set()


def test_what_both_said_in_a_call_with_transcripts_is_in_no_line(lines: io.StringIO) -> None:
    interrupted_call(None)
    assert_private(lines, *SECRETS, events={"session_opened", "response_done", "session_closed"})


async def test_prompts_texts_audio_arguments_and_keys_of_a_call_are_in_no_line(
    lines: io.StringIO,
) -> None:
    async with running_app(small_settings(api_keys=(API_KEY,))) as app:
        url = f"{app.url}/v1/realtime?model=scripted"
        async with aiohttp.ClientSession() as http:
            refused = await http.get(url, headers={"Authorization": f"Bearer {WRONG_KEY}"})
            assert refused.status == 401
            key = {"Authorization": f"Bearer {API_KEY}"}
            async with http.ws_connect(url, headers=key) as call:
                for message in (
                    {
                        "type": "session.update",
                        "session": {"type": "realtime", "instructions": INSTRUCTIONS},
                    },
                    {"type": "input_audio_buffer.append", "audio": AUDIO},
                    {"type": "input_audio_buffer.commit"},
                    {
                        "type": "conversation.item.create",
                        "item": {
                            "type": "message",
                            "role": "user",
                            "content": [{"type": "input_text", "text": QUESTION}],
                        },
                    },
                    {
                        "type": "conversation.item.create",
                        "item": {
                            "type": "function_call",
                            "name": "f",
                            "call_id": "c",
                            "arguments": json.dumps(ARGUMENTS),
                        },
                    },
                    # What is refused is quoted to the client, and to nobody else.
                    {"type": QUESTION},
                    {"type": "session.update", "session": {"voice": {"x": INSTRUCTIONS}}},
                    {"type": "response.create", "response": {"instructions": INSTRUCTIONS}},
                ):
                    await call.send_str(json.dumps(message))
                await call.send_str("{" + QUESTION)
                seen: list[str] = []
                while "response.done" not in seen:
                    seen.append(json.loads(await call.receive_str())["type"])
                assert "error" in seen
                assert "response.output_audio_transcript.done" in seen
            async with http.post(
                f"{app.url}/v1/audio/speech", json={"input": QUESTION, "model": "x"}, headers=key
            ) as spoken:
                await spoken.read()
    assert_private(
        lines,
        INSTRUCTIONS,
        QUESTION,
        LINE.removeprefix("This is a scripted "),
        AUDIO,
        AUDIO[:40],
        WRONG_KEY,
        API_KEY,
        *ARGUMENTS.values(),
        events={"session_opened", "response_done", "session_closed"},
    )
