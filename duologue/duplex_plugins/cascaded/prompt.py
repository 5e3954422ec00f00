"""The conversation as a language model should read it.

The persona and the examples come first and are the same for every turn of every session, so that a
prefix cache holds them; then the client's instructions; then the conversation. Pure; must not
know which model reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from duologue.duplex_plugins.cascaded.settings import CascadedSettings
from duologue.duplex_plugins.contract import ItemView, PluginConfig
from duologue.engines.payloads import ChatMessage, ChatRequest

Role = Literal["system", "user", "assistant"]

INTERRUPTED = "..."
"""Follows the heard words of an answer that was interrupted."""

SILENCE = "(I have been silent for a while. Ask me briefly whether I am still there.)"
"""Stands for what a person has not said, when the model is to speak up."""

_CHARS_PER_TOKEN = 3.5
_TOKENS_PER_MESSAGE = 5
_LEAST_CHARS = 200
_FORGET_AT_ONCE = 4
"""Exchanges. Forgetting one at a time would change the beginning of every prompt, and a prefix
cache would be of no use."""


def chat_request(
    conversation: Iterable[ItemView], config: PluginConfig, settings: CascadedSettings
) -> ChatRequest:
    """Build the prompt for the next answer."""
    limit = settings.max_output_tokens
    if config.max_output_tokens is not None:
        limit = min(limit, config.max_output_tokens)
    temperature = settings.temperature if config.temperature is None else config.temperature
    return ChatRequest(
        messages=_messages(conversation, config, settings),
        max_tokens=limit,
        temperature=temperature,
    )


def prefill_request(
    conversation: Iterable[ItemView], config: PluginConfig, settings: CascadedSettings
) -> ChatRequest:
    """Build a request that only lets the model read what is known of the next prompt."""
    return ChatRequest(messages=_messages(conversation, config, settings), max_tokens=0)


def opening(settings: CascadedSettings) -> tuple[ChatMessage, ...]:
    """Return how every prompt begins."""
    messages = [ChatMessage("system", settings.persona)] if settings.persona else []
    for example in settings.examples:
        messages.append(ChatMessage("user", example.user))
        messages.append(ChatMessage("assistant", example.assistant))
    return tuple(messages)


def unanswered(conversation: Sequence[ItemView]) -> Sequence[ItemView]:
    """Return the person's turns since the assistant was last heard."""
    start = len(conversation)
    while start and not (
        conversation[start - 1].role == "assistant" and conversation[start - 1].text
    ):
        start -= 1
    return [item for item in conversation[start:] if item.role == "user"]


def _messages(
    conversation: Iterable[ItemView], config: PluginConfig, settings: CascadedSettings
) -> tuple[ChatMessage, ...]:
    fixed = list(opening(settings))
    if config.instructions:
        if len(fixed) == 1:
            # Some chat templates allow only one system message, at the start.
            fixed = [ChatMessage("system", f"{fixed[0].content}\n\n{config.instructions}")]
        else:
            fixed.append(ChatMessage("system", config.instructions))
    room = settings.prompt_tokens - _tokens(fixed)
    return (*fixed, *_fitting(_joined(conversation), room))


def _joined(conversation: Iterable[ItemView]) -> list[ChatMessage]:
    """Drop what says nothing, and make one message of turns that follow each other."""
    messages: list[ChatMessage] = []
    for item in conversation:
        text = SILENCE if item.silence else (item.text or "").strip()
        if not text:
            continue
        if item.role == "assistant" and item.interrupted:
            text += INTERRUPTED
        if messages and messages[-1].role == item.role:
            text = f"{messages.pop().content} {text}"
        messages.append(ChatMessage(item.role, text))
    return messages


def _fitting(messages: list[ChatMessage], room: float) -> list[ChatMessage]:
    """Leave out the oldest exchanges until the rest fits; the last is kept, if need be cut."""
    starts = [
        index
        for index, message in enumerate(messages)
        if message.role == "user" and (index == 0 or messages[index - 1].role != "user")
    ]
    start = 0
    for later in (*starts[_FORGET_AT_ONCE::_FORGET_AT_ONCE], *starts[-1:]):
        if _tokens(messages[start:]) <= room:
            break
        start = max(start, later)
    kept = messages[start:]
    if kept and _tokens(kept) > room:
        last = kept[-1]
        chars = max(_LEAST_CHARS, int((room - _TOKENS_PER_MESSAGE) * _CHARS_PER_TOKEN))
        kept = [ChatMessage(last.role, last.content[-chars:])]
    return kept


def _tokens(messages: Iterable[ChatMessage]) -> float:
    return sum(
        len(message.content) / _CHARS_PER_TOKEN + _TOKENS_PER_MESSAGE for message in messages
    )
