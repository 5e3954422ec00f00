from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from duologue.core.errors import ConfigError
from duologue.engines.payloads import (
    ChatMessage,
    ChatRequest,
    SpeakText,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    Tools,
    ToolSpec,
)
from duologue.engines.runners.llm.openai_url import ChatUrlSettings, build
from tests.fakes.http_server import Reply, serving
from tests.fakes.jobs import Jobs
from tests.patience import PATIENCE_S

REQUEST = ChatRequest((ChatMessage("system", "Be brief."), ChatMessage("user", "Hi 🙂")), 10)
USAGE = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}


def event(content: str) -> bytes:
    return sse({"choices": [{"delta": {"content": content}}]})


def sse(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


DONE = b"data: [DONE]\n\n"


def jobs_on(url: str, **settings: object) -> Jobs:
    jobs = Jobs()
    jobs.runner = build(ChatUrlSettings(base_url=url, model="big", **settings), jobs.wake)
    return jobs


def test_an_answer_is_streamed() -> None:
    go_on = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield event("Hel")
        assert go_on.wait(PATIENCE_S)
        yield event("lo 🙂") + sse(USAGE) + DONE

    with serving(lambda _: Reply(pieces=pieces())) as server:
        jobs = jobs_on(server.url)
        job = jobs.open(REQUEST)
        assert jobs.until(job, TextDelta) == [TextDelta("Hel")]
        go_on.set()
        outputs, error = jobs.finish(job)
    assert error is None
    assert outputs == [TextDelta("lo 🙂"), TokenUsage(9, 2)]
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert json.loads(asked.body) == {
        "model": "big",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi 🙂"},
        ],
        "max_tokens": 10,
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_events_may_be_cut_anywhere_and_comments_come_between() -> None:
    stream = b": ping\n\nevent: x\n" + event("Grüß") + event(" dich") + DONE
    pieces = [stream[i : i + 1] for i in range(len(stream))]
    with serving(lambda _: Reply(pieces=pieces)) as server:
        outputs = jobs_on(server.url).outputs_of([REQUEST])
    assert "".join(o.text for o in outputs if isinstance(o, TextDelta)) == "Grüß dich"


def test_a_cancel_hangs_up() -> None:
    enough = threading.Event()

    def pieces() -> Iterator[bytes]:
        while not enough.is_set():
            yield event("x" * 5000)

    with serving(lambda _: Reply(pieces=pieces())) as server:
        jobs = jobs_on(server.url)
        job = jobs.open(REQUEST)
        jobs.until(job, TextDelta)
        assert jobs.runner is not None
        jobs.runner.close(job)
        assert server.hung_up.wait(PATIENCE_S)
        enough.set()


def test_the_key_comes_from_its_file(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("secret\n")
    with serving(lambda _: Reply(pieces=[DONE])) as server:
        jobs_on(server.url, api_key_file=str(key)).run(REQUEST)
    assert server.asked[0].headers["authorization"] == "Bearer secret"


def test_the_longest_answer_goes_by_the_servers_name_for_it() -> None:
    with serving(lambda _: Reply(pieces=[DONE])) as server:
        jobs_on(server.url, length_field="max_completion_tokens").run(REQUEST)
    body = json.loads(server.asked[0].body)
    assert body["max_completion_tokens"] == 10
    assert "max_tokens" not in body


def test_nobody_is_asked_to_read_ahead() -> None:
    with serving(lambda _: Reply(pieces=[DONE])) as server:
        ahead = ChatRequest(REQUEST.messages, max_tokens=0)
        assert jobs_on(server.url).outputs_of([ahead]) == [TokenUsage(0, 0)]
    assert server.asked == []


@pytest.mark.parametrize(
    ("status", "pieces", "code"),
    [
        (401, [b"bad key"], "upstream_denied"),
        (200, [event("a")], "upstream_failed"),
        (200, [sse({"error": {"message": "boom"}})], "stage_failed"),
        (200, [b"data: nonsense\n\n"], "stage_failed"),
    ],
)
def test_what_goes_wrong_fails_the_job_with_its_reason(
    status: int, pieces: list[bytes], code: str
) -> None:
    with serving(lambda _: Reply(status, pieces)) as server:
        _, error = jobs_on(server.url).run(REQUEST)
    assert error is not None
    assert error.code == code


def test_several_answers_are_followed_at_once() -> None:
    both = threading.Barrier(2)

    def pieces() -> Iterator[bytes]:
        both.wait(PATIENCE_S)
        yield event("x") + DONE

    with serving(lambda _: Reply(pieces=pieces())) as server:
        jobs = jobs_on(server.url)
        first, second = jobs.open(REQUEST), jobs.open(REQUEST)
        for job in (first, second):
            jobs.next(job)
        assert jobs.finish(first) == ([TextDelta("x")], None)
        assert jobs.finish(second) == ([TextDelta("x")], None)


def test_something_else_than_a_prompt_is_refused() -> None:
    _, error = jobs_on("http://127.0.0.1:1/v1").run(SpeakText("x", 1))
    assert error is not None
    assert "SpeakText" in error.message


def test_a_url_that_is_none_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="base_url"):
        jobs_on("localhost:8000")


def test_functions_are_offered_and_calls_come_back_piece_by_piece() -> None:
    first = {"index": 0, "id": "c1", "type": "function", "function": {"name": "look"}}
    more = {"index": 0, "function": {"arguments": "{}"}}
    pieces = [sse({"choices": [{"delta": {"tool_calls": [piece]}}]}) for piece in (first, more)]
    tools = Tools((ToolSpec("look"),), "required")
    request = ChatRequest((ChatMessage("user", "Hi"),), 10, tools=tools)
    with serving(lambda _: Reply(pieces=[*pieces, sse(USAGE), DONE])) as server:
        outputs = jobs_on(server.url).outputs_of([request])
    assert outputs == [
        ToolCallDelta(0, "c1", "look"),
        ToolCallDelta(0, arguments="{}"),
        TokenUsage(9, 2),
    ]
    asked = json.loads(server.asked[0].body)
    assert asked["tool_choice"] == "required"
    assert [tool["function"]["name"] for tool in asked["tools"]] == ["look"]
