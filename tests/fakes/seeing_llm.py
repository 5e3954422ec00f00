"""A language model behind a URL that sees: it says how light the last picture is.

It keeps what it was asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.http_server import Asked, Reply, serving
from tests.fakes.pictures import shade_of


@dataclass
class SeeingLlm:
    """Where it listens, and the messages of each request."""

    url: str = ""
    asked: list[list[dict[str, Any]]] = field(default_factory=list)

    def shades(self, request: int = -1) -> list[list[int]]:
        """How grey the pictures of each of the person's messages in a request were."""
        users = [message for message in self.asked[request] if message["role"] == "user"]
        return [[round(shade_of(url), -1) for url in pictures_of(message)] for message in users]

    def texts(self, request: int = -1) -> list[str]:
        """The words of each of the person's messages in a request."""
        users = [message for message in self.asked[request] if message["role"] == "user"]
        return [text_of(message) for message in users]

    def answer(self, asked: Asked) -> Reply:
        messages = json.loads(asked.body)["messages"]
        self.asked.append(messages)
        seen = pictures_of(messages[-1])
        words = f"It is {round(shade_of(seen[-1]), -1)}." if seen else "Nothing."
        chunk = {"choices": [{"delta": {"content": words}, "finish_reason": "stop"}]}
        pieces = [f"data: {json.dumps(chunk)}\n\n".encode(), b"data: [DONE]\n\n"]
        return Reply(pieces=pieces)


def pictures_of(message: dict[str, Any]) -> list[str]:
    content = message["content"]
    if isinstance(content, str):
        return []
    return [part["image_url"]["url"] for part in content if part["type"] == "image_url"]


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return " ".join(part["text"] for part in content if part["type"] == "text")


@contextmanager
def seeing_llm() -> Iterator[SeeingLlm]:
    model = SeeingLlm()
    with serving(model.answer) as server:
        model.url = server.url
        yield model
