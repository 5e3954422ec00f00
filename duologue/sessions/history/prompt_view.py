"""Items as a prompt should have them: words, and function calls with their outputs.

Pure functions. This module must not know where the items come from or what a prompt looks like.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UNSET

from duologue.core.errors import ProtocolError
from duologue.duplex_plugins.contract import ItemView
from duologue.engines.payloads import ToolCall
from duologue.protocol.items import (
    FunctionCallItem,
    FunctionCallOutputItem,
    InputAudio,
    InputImage,
    InputText,
    Item,
    MessageItem,
    OutputAudio,
    OutputText,
)
from duologue.sessions.history.entry import Entry


def prompt_view(entries: Sequence[Entry]) -> tuple[ItemView, ...]:
    """Return items as a prompt should have them.

    Function calls stand right before their outputs, where those are: calls that were made
    together stay together where their outputs are, too. Outputs without a call are left out, and
    so are calls that were cut off; a call that has no output yet is followed by one without text.
    """
    return tuple(_views(entries))


def view_of(entry: Entry) -> ItemView | None:
    """Return one item as a prompt should have it, or ``None`` where it has no place in one."""
    item = entry.item
    match item:
        case FunctionCallItem(status="completed"):
            call = ToolCall(item.call_id, item.name, item.arguments)
            return ItemView(id=item.id, role="assistant", text="", call=call)
        case FunctionCallItem():
            return None
        case FunctionCallOutputItem():
            return ItemView(id=item.id, role="tool", text=item.output, call_id=item.call_id)
    if entry.spoken is not None:
        text: str | None = entry.spoken.heard_text()
    else:
        text = _message_text(item)
    if item.role == "assistant" and not text:
        return None
    images = tuple(part.image_url for part in item.content if isinstance(part, InputImage))
    return ItemView(
        id=item.id,
        role=item.role,
        text=text,
        interrupted=entry.interrupted,
        silence=entry.silence,
        images=images,
    )


def check_can_be_read(item: Item, param: str, *, sees: bool, hears: bool = False) -> None:
    """Refuse speech of the person that nobody will ever transcribe, and pictures for the blind.

    Args:
        sees: The model understands pictures.
        hears: What the person says in it will be transcribed.

    Raises:
        ProtocolError: A part is audio without a transcript, or a picture that the model cannot
            see; or more than one part is to be transcribed.
    """
    spoken = speech_in(item)
    content = item.content if isinstance(item, MessageItem) else ()
    for index, part in enumerate(content):
        if isinstance(part, InputImage) and not sees:
            raise ProtocolError(
                "this model does not see: leave out the picture, or describe it as input_text",
                code="unsupported",
                param=f"{param}.content[{index}]",
            )
        if not isinstance(part, InputAudio) or part.transcript is not None:
            continue
        if hears and spoken is not None and spoken[0] != index:
            raise ProtocolError(
                "one part of an item can be transcribed: make an item of each, or send transcripts",
                code="unsupported",
                param=f"{param}.content[{index}]",
            )
        if hears and (spoken is None or not spoken[1]):
            raise ProtocolError(
                "the part has neither audio nor a transcript",
                code="missing_required_parameter",
                param=f"{param}.content[{index}].audio",
            )
        if not hears:
            raise ProtocolError(
                "audio inside an item is not heard here: append it to the input audio buffer and "
                "commit it, or send its transcript",
                code="unsupported",
                param=f"{param}.content[{index}].transcript",
            )


def speech_in(item: Item) -> tuple[int, bytes] | None:
    """Return the first part of an item that is to be transcribed, and its audio."""
    for index, part in enumerate(item.content if isinstance(item, MessageItem) else ()):
        if isinstance(part, InputAudio) and part.transcript is None and part.audio is not UNSET:
            return index, part.audio
    return None


def _message_text(item: MessageItem) -> str | None:
    texts: list[str] = []
    for part in item.content:
        match part:
            case InputText(text=text) | OutputText(text=text):
                texts.append(text)
            case InputAudio(transcript=None):
                return None
            case InputAudio(transcript=transcript) | OutputAudio(transcript=transcript):
                texts.append(transcript or "")
            case _:
                pass
    return " ".join(text for text in texts if text)


def _views(entries: Sequence[Entry]) -> Iterator[ItemView]:
    if not any(isinstance(entry.item, FunctionCallItem) for entry in entries):
        for entry in entries:
            if not isinstance(entry.item, FunctionCallOutputItem):
                yield from _one(entry)
        return
    calls, answered = _calls(entries)
    outputs: list[ItemView] = []
    for entry in entries:
        if isinstance(entry.item, FunctionCallOutputItem):
            outputs.extend(_one(entry))
            continue
        yield from _with_calls(outputs, calls)
        outputs = []
        if not isinstance(entry.item, FunctionCallItem):
            yield from _one(entry)
        elif entry.item.call_id in calls and entry.item.call_id not in answered:
            yield calls[entry.item.call_id]
            yield ItemView(id=entry.item.id, role="tool", text=None, call_id=entry.item.call_id)
    yield from _with_calls(outputs, calls)


def _one(entry: Entry) -> Iterator[ItemView]:
    view = view_of(entry)
    if view is not None:
        yield view


def _calls(entries: Sequence[Entry]) -> tuple[dict[str, ItemView], set[str]]:
    """Return the whole calls by ``call_id``, in order, and the ids that have an output."""
    calls: dict[str, ItemView] = {}
    answered: set[str] = set()
    for entry in entries:
        if isinstance(entry.item, FunctionCallItem):
            view = view_of(entry)
            if view is not None:
                calls[entry.item.call_id] = view
        elif isinstance(entry.item, FunctionCallOutputItem):
            answered.add(entry.item.call_id)
    return calls, answered


def _with_calls(outputs: list[ItemView], calls: dict[str, ItemView]) -> Iterator[ItemView]:
    """Yield the calls of outputs that follow each other, in their own order, then the outputs."""
    by_call = {output.call_id: output for output in outputs}
    together = [call_id for call_id in calls if call_id in by_call]
    yield from (calls[call_id] for call_id in together)
    yield from (by_call[call_id] for call_id in together)
