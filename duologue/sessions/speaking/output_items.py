"""The items of one response's output: what it says, and the functions that it calls.

A response makes its items one after the other; the wire shows one at a time, perhaps later. This
module must not know the wire, the conversation or the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from duologue.engines.payloads import SpeechMark
from duologue.protocol.items import FunctionCallItem, MessageItem
from duologue.sessions.history.entry import Spoken


@dataclass(slots=True, eq=False)
class OutputMessage:
    """A message of the assistant.

    Args:
        index: Its place in the output.
        audio: It is spoken.
        spoken: All that was generated so far; shared with the conversation's entry.
        text_start: Where it begins in the text of the response.
        sample_start: Where it begins in the speech of the response.
        delivered_text: What was handed to the connection as text or transcript.
        wire: The item as the client was last shown it.
    """

    id: str
    index: int
    audio: bool
    spoken: Spoken
    text_start: int = 0
    sample_start: int = 0
    delivered_text: list[str] = field(default_factory=list)
    sent_speech: bool = False
    wire: MessageItem = field(init=False)

    def mark(self, marks: Sequence[SpeechMark]) -> None:
        """Note marks, which count from the start of the response; those before it are not its."""
        if not self.text_start and not self.sample_start:
            self.spoken.marks.extend(marks)
            return
        for mark in marks:
            text_end, sample = mark.text_end - self.text_start, mark.sample - self.sample_start
            if text_end >= 0 and sample >= 0:
                self.spoken.marks.append(SpeechMark(text_end, sample, mark.exact))

    def heard_text(self) -> str:
        """Return what the person has heard or, of a written message, could read of it."""
        return self.spoken.heard_text() if self.audio else "".join(self.delivered_text)

    def complete(self) -> None:
        """All of it is generated."""
        self.spoken.complete = True


@dataclass(slots=True, eq=False)
class OutputCall:
    """A function call.

    Args:
        index: Its place in the output.
        key: The plugin's name for it.
        arguments: All pieces so far; they are shown as soon as the call is.
        whole: No more of them comes.
        wire: The item as the client was last shown it.
    """

    id: str
    index: int
    key: str
    name: str
    call_id: str
    arguments: list[str] = field(default_factory=list)
    whole: bool = False
    wire: FunctionCallItem = field(init=False)

    def complete(self) -> None:
        """All of it is generated."""
        self.whole = True


OutputItem = OutputMessage | OutputCall
