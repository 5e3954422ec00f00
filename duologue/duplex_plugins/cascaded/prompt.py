"""The conversation as a language model should read it.

The persona and the examples come first and are the same for every turn of every session, so that a
prefix cache holds them; then the client's instructions; then the conversation. Pure; must not
know which model reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from duologue.duplex_plugins.cascaded.settings import CascadedSettings
from duologue.duplex_plugins.contract import ItemView, PluginConfig
from duologue.duplex_plugins.prompts.conversation import joined
from duologue.duplex_plugins.prompts.retained import retained, tokens, tool_tokens
from duologue.engines.payloads import NO_TOOLS, ChatMessage, ChatRequest, Tools


def chat_request(
    conversation: Iterable[ItemView], config: PluginConfig, settings: CascadedSettings
) -> ChatRequest:
    """Build the prompt for the next answer.

    Raises:
        LimitExceeded: The conversation is too long, and nothing of it may be left out.
    """
    conversation = tuple(conversation)
    tools = callable_now(conversation, config.tools, settings)
    limit = settings.max_output_tokens
    if config.max_output_tokens is not None:
        limit = min(limit, config.max_output_tokens)
    temperature = settings.temperature if config.temperature is None else config.temperature
    return ChatRequest(
        messages=_messages(conversation, config, settings, tools),
        max_tokens=limit,
        temperature=temperature,
        tools=tools,
        adapter=settings.llm_adapter,
    )


def prefill_request(
    conversation: Iterable[ItemView], config: PluginConfig, settings: CascadedSettings
) -> ChatRequest:
    """Build a request that only lets the model read what is known of the next prompt.

    The person's words come next: where nothing is known of them, that they come.

    Raises:
        LimitExceeded: As ``chat_request`` does.
    """
    messages = _messages(conversation, config, settings, config.tools)
    if not messages or messages[-1].role != "user":
        messages = (*messages, ChatMessage("user", ""))
    return ChatRequest(
        messages=messages, max_tokens=0, tools=config.tools, adapter=settings.llm_adapter
    )


def callable_now(
    conversation: Sequence[ItemView], tools: Tools, settings: CascadedSettings
) -> Tools:
    """Return what the model may call: nothing, once it has called often enough in a row."""
    rounds, is_call = 0, False
    for item in reversed(conversation):
        if item.role == "user":
            break
        # Calls that were made together are one round.
        rounds += item.call is not None and not is_call
        is_call = item.call is not None
    if tools.choice == "auto" and rounds >= settings.call_rounds:
        return msgspec.structs.replace(tools, choice="none")
    return tools


def opening(settings: CascadedSettings, tools: Tools = NO_TOOLS) -> tuple[ChatMessage, ...]:
    """Return how every prompt begins.

    Where the model may call functions there are no examples: nobody calls in them, and a small
    model would follow suit.
    """
    messages = [ChatMessage("system", settings.persona)] if settings.persona else []
    for example in () if tools.callable else settings.examples:
        messages.append(ChatMessage("user", example.user))
        messages.append(ChatMessage("assistant", example.assistant))
    return tuple(messages)


def _messages(
    conversation: Iterable[ItemView],
    config: PluginConfig,
    settings: CascadedSettings,
    tools: Tools,
) -> tuple[ChatMessage, ...]:
    fixed = _fixed(config, settings, tools)
    taken = tokens(fixed) + tool_tokens(tools)
    if tools != config.tools:
        # What stays must not depend on whether the model may call just now.
        others = _fixed(config, settings, config.tools)
        taken = max(taken, tokens(others) + tool_tokens(config.tools))
    elif tools.callable:
        taken = max(taken, tokens(_fixed(config, settings, NO_TOOLS)))
    room = settings.prompt_tokens - taken
    said = joined(conversation)
    return (*fixed, *retained(said, room, config.retention, settings.picture_tokens))


def _fixed(config: PluginConfig, settings: CascadedSettings, tools: Tools) -> list[ChatMessage]:
    fixed = list(opening(settings, tools))
    if not config.instructions:
        return fixed
    if len(fixed) == 1:
        # Some chat templates allow only one system message, at the start.
        return [ChatMessage("system", f"{fixed[0].content}\n\n{config.instructions}")]
    return [*fixed, ChatMessage("system", config.instructions)]
