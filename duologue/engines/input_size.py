"""What an input weighs while it waits. Must not know where inputs wait, or how much may.

Both ends of a link use it: the engine adds what it sends, workers say what they took.
"""

from __future__ import annotations

from duologue.engines.media_payloads import DrawImage, MakeSound, MakeVideo
from duologue.engines.payloads import (
    AudioChunk,
    ChatMessage,
    ChatRequest,
    CodeFrames,
    LockstepStart,
    Payload,
    SpeakText,
    TextDelta,
    Tools,
)
from duologue.engines.policy_payloads import DecideActions

INPUT_OVERHEAD_BYTES = 256
"""What an input takes beside its contents, so that a flood of empty ones is bounded as well."""


def input_bytes(payload: Payload) -> int:
    """Roughly the memory that an input takes; a character counts for one byte."""
    match payload:
        case AudioChunk(pcm=pcm):
            return INPUT_OVERHEAD_BYTES + len(pcm)
        case TextDelta(text=text) | SpeakText(text=text):
            return INPUT_OVERHEAD_BYTES + len(text)
        case CodeFrames(codes=codes):
            return INPUT_OVERHEAD_BYTES + len(codes)
        case LockstepStart(instructions=text, log=log):
            return INPUT_OVERHEAD_BYTES + len(text) + len(log)
        case ChatRequest(messages=messages, tools=tools):
            said = sum(_message_bytes(each) for each in messages)
            return INPUT_OVERHEAD_BYTES + said + _tools_bytes(tools)
        case DrawImage(prompt=prompt, negative=negative, image=image, mask=mask):
            return INPUT_OVERHEAD_BYTES + len(prompt) + len(negative) + len(image) + len(mask)
        case MakeVideo(prompt=prompt, negative=negative, image=image, source=source):
            return INPUT_OVERHEAD_BYTES + len(prompt) + len(negative) + len(image) + len(source)
        case MakeSound(prompt=prompt, negative=negative):
            return INPUT_OVERHEAD_BYTES + len(prompt) + len(negative)
        case DecideActions(images=images, state=state, prompt=prompt):
            pictures = sum(len(image) for image in images)
            return INPUT_OVERHEAD_BYTES + pictures + len(state) + len(prompt)
        case _:
            return INPUT_OVERHEAD_BYTES


def _message_bytes(message: ChatMessage) -> int:
    calls = sum(INPUT_OVERHEAD_BYTES + len(call.arguments) for call in message.calls)
    images = sum(len(image) for image in message.images)
    return INPUT_OVERHEAD_BYTES + len(message.content) + calls + images


def _tools_bytes(tools: Tools) -> int:
    return sum(
        INPUT_OVERHEAD_BYTES + len(each.description) + len(each.parameters)
        for each in tools.functions
    )
