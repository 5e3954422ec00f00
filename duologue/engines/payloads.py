"""What travels into and out of a stage: one closed, typed union, the same in every process.

Adding a kind of payload is one class here and one line in ``Payload``; what it weighs and costs its
base class knows. Fields are small values and bytes, so that a payload crosses a process edge as
MessagePack without a converter. This module must not know sessions, plugins or runners.
"""

from __future__ import annotations

from typing import Literal

from duologue.core.audio import SAMPLE_BYTES, samples_to_ms
from duologue.engines.answer_payloads import AnswerWords, BeginAnswer
from duologue.engines.frame_counts import FrameCounts
from duologue.engines.media_payloads import (
    DrawImage,
    ImageData,
    MakeSound,
    MakeVideo,
    SoundData,
    StepsDone,
    VideoData,
)
from duologue.engines.payload_base import OVERHEAD_BYTES, PayloadBase
from duologue.engines.policy_payloads import ActionChunk, DecideActions


class AudioChunk(PayloadBase, frozen=True):
    """A run of s16le mono samples.

    Units:
        ``start_sample`` counts samples at ``rate_hz`` on the stream's own clock.
    """

    pcm: bytes
    rate_hz: int
    start_sample: int = 0

    def size_bytes(self) -> int:
        """As of any payload, said outright: there are fifty a second of these in every call."""
        return OVERHEAD_BYTES + len(self.pcm)

    def cost(self) -> int:
        """Return its milliseconds, by where in its stream it stands.

        Rounded by themselves, pieces would cost less than what is granted for all of them together,
        and the shortest nothing at all.
        """
        start, rate_hz = self.start_sample, self.rate_hz
        end = start + len(self.pcm) // SAMPLE_BYTES
        return samples_to_ms(end, rate_hz) - samples_to_ms(start, rate_hz)


class VoiceActivity(PayloadBase, frozen=True):
    """What a voice activity detector thinks of one window of audio.

    Units:
        The window ends just before ``end_sample``, on the clock of the chunks that came in.
    """

    probability: float
    end_sample: int


class EndOfTurn(PayloadBase, frozen=True):
    """How likely the person has finished, judged on the audio up to ``end_sample``."""

    probability: float
    end_sample: int


class ListenOptions(PayloadBase, frozen=True):
    """How a recogniser is to listen; what it cannot do fails the request.

    Args:
        words: Say when each word was said.
        language: What is spoken, as ISO 639-1; empty: the stage's own.
        prompt: Text that may have come before: names and spellings are taken from it.
        temperature: Above zero, alternatives are drawn at random.
        translate: Answer in English, whatever is spoken.
    """

    words: bool = False
    language: str = ""
    prompt: str = ""
    temperature: float = 0.0
    translate: bool = False


class DecodeSpeech(PayloadBase, frozen=True):
    """Ask a recogniser for the text of what was appended so far.

    A newer request makes an older one that has not begun superfluous. ``partial`` may trade
    accuracy for speed; ``final`` may not. With ``options``, all audio must fit in one window of the
    model, and the answer has ``details``.
    """

    kind: Literal["partial", "final"]
    end_sample: int
    options: ListenOptions | None = None


class HeardWord(PayloadBase, frozen=True):
    """A word, with the white space before it and the punctuation behind it.

    Units:
        Samples on the clock of the chunks that came in.
    """

    text: str
    start_sample: int
    end_sample: int
    probability: float
    tokens: tuple[int, ...] = ()


class HeardDetails(PayloadBase, frozen=True):
    """How a recogniser came to a text.

    Args:
        words: Empty where they were not asked for, or the recogniser cannot tell.
        log_prob: Mean of the tokens' natural logarithms.
        no_speech: How likely there was no speech at all.
    """

    words: tuple[HeardWord, ...] = ()
    log_prob: float = 0.0
    no_speech: float = 0.0


class Transcript(PayloadBase, frozen=True):
    """The text of an utterance so far; empty when a recogniser heard no words in it."""

    text: str
    kind: Literal["partial", "final"]
    end_sample: int
    details: HeardDetails | None = None


class ToolSpec(PayloadBase, frozen=True):
    """A function that a model may call.

    ``parameters`` is the JSON Schema of its arguments, as JSON text.
    """

    name: str
    description: str = ""
    parameters: str = '{"type":"object","properties":{}}'


class Tools(PayloadBase, frozen=True):
    """What functions a model may call, and whether it has to.

    ``none``: it may call none, and need not know of them. ``required``: it must call one; where
    ``only`` names a function, that one. Without ``parallel`` it calls one at most.
    """

    functions: tuple[ToolSpec, ...] = ()
    choice: Literal["auto", "none", "required"] = "auto"
    only: str = ""
    parallel: bool = True

    def allows(self, name: str) -> bool:
        """Tell whether the function may be called."""
        if self.choice == "none" or self.only not in ("", name):
            return False
        return any(function.name == name for function in self.functions)

    @property
    def callable(self) -> bool:
        """Tell whether any function may be called."""
        return bool(self.functions) and self.choice != "none"


class ToolCall(PayloadBase, frozen=True):
    """A function call in a conversation; ``arguments`` is JSON text."""

    call_id: str
    name: str
    arguments: str


class ChatMessage(PayloadBase, frozen=True):
    """One message of a prompt.

    ``calls`` are the function calls of an assistant's message. A message of role ``tool`` is the
    output of the call ``call_id``, and follows the message with that call. ``images`` are
    ``data:image/`` URLs, for models that see; ``recordings`` are s16le mono at 16 kHz, for those
    that hear. Both come before the words.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    images: tuple[str, ...] = ()
    recordings: tuple[bytes, ...] = ()


NO_TOOLS = Tools()


class ChatRequest(PayloadBase, frozen=True):
    """Ask a language model to go on with a conversation.

    ``top_p`` leaves out unlikely tokens; text ends before any of ``stop``. ``schema`` is a JSON
    Schema, as JSON text, that the answer must obey; ``{}`` allows any JSON object, empty any text.
    ``adapter`` names weights that are laid over the model's (LoRA); empty: its own. ``voice`` has
    the answer said as well, by a pipeline that can; empty: in its default voice.
    """

    messages: tuple[ChatMessage, ...]
    max_tokens: int
    temperature: float = 0.0
    seed: int = 0
    tools: Tools = NO_TOOLS
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    schema: str = ""
    adapter: str = ""
    voice: str | None = None


class TextDelta(PayloadBase, frozen=True):
    """The next piece of generated text; never splits a character."""

    text: str


class ToolCallDelta(PayloadBase, frozen=True):
    """The next piece of a function call.

    The first piece of a call has its ``name``, and its ``call_id`` where the model gives one; each
    may have more of the ``arguments``, which together are JSON text. A call is whole when one with
    another ``index`` begins, or the stage ends. Names are not checked: a model may make one up.
    """

    index: int
    call_id: str = ""
    name: str = ""
    arguments: str = ""


class TokenUsage(PayloadBase, frozen=True):
    """What a language model read and wrote, once, at the end.

    ``cached_tokens`` are those of the input that it knew already; the audio ones are a part of
    the number beside them. ``cut``: it stopped because it was allowed no more.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    input_audio_tokens: int = 0
    output_audio_tokens: int = 0
    cached_audio_tokens: int = 0
    cut: bool = False

    def cost(self) -> int:
        """Nothing: it describes what came before."""
        return 0


class SpeakText(PayloadBase, frozen=True):
    """Ask a synthesiser to speak one clause.

    ``text_end`` is the offset in the response's transcript at which this clause ends; it comes
    back in the clause's ``SpeechMark``, also where ``text`` says nothing.

    ``word_ends`` are words whose place is known: the offset just past the word in ``text``, and
    the offset in the transcript. A synthesiser that knows when it says them marks them too.

    ``instructions`` say how to speak, for synthesisers that can be told.
    """

    text: str
    text_end: int
    voice: str | None = None
    speed: float = 1.0
    word_ends: tuple[tuple[int, int], ...] = ()
    instructions: str = ""


class SpeechMark(PayloadBase, frozen=True):
    """All text before ``text_end`` has been spoken when the stream's ``sample`` is reached.

    ``exact`` is false where the position was interpolated rather than reported by the model.
    """

    text_end: int
    sample: int
    exact: bool = True

    def cost(self) -> int:
        """Nothing: it describes the audio."""
        return 0


class CodeFrames(PayloadBase, frozen=True):
    """Frames of codes that a talker has made of a clause, for a codec to sound.

    Args:
        codes: 16-bit little-endian numbers, frame after frame, ``books`` of them to a frame.
        heard: The talker has sounded these itself, ahead of the codec: they only move it on.
        text_end: The clause is over with these; as of its ``SpeakText``. -1: more follow.
    """

    codes: bytes
    books: int
    heard: bool = False
    text_end: int = -1

    @property
    def count(self) -> int:
        """How many frames."""
        return len(self.codes) // (2 * self.books)

    def cost(self) -> int:
        """Return its frames."""
        return self.count


NOT_SAID = 0xFFFF


class LockstepStart(PayloadBase, frozen=True):
    """Begin a stream of a model that hears and speaks a frame at every tick; the first input.

    ``AudioChunk`` at the model's rate follow, of any length; what is missing at a tick is silence.

    Args:
        instructions: Who it is to be, where the model can be told; empty: nobody in particular.
        voice: A name; empty: the model's default.
        seed: What it says depends on this, and on what it hears; 0: another one each time.
        pins_persona: Keep the beginning in sight when the window slides past it.
        log: Frames to go through again after the beginning, of a stream whose worker was lost:
            for each the text token, the codes said and the codes heard, as 16-bit little-endian
            numbers. ``NOT_SAID`` stands for all that was said in a frame that was taken back.
        temperature: How daring it is, in words and sound; 0: always the likeliest; ``None``: as it
            was made for.
        top_k: Among how many of the likeliest it draws, in words and sound; ``None``: likewise.
    """

    instructions: str = ""
    voice: str = ""
    seed: int = 0
    pins_persona: bool = False
    log: bytes = b""
    temperature: float | None = None
    top_k: int | None = None


class LockstepRewind(PayloadBase, frozen=True):
    """Forget what was said in the frame of this number and since: nobody heard it.

    What the person said meanwhile stays, and the model was silent. Where that is too long ago,
    or yet to come, nothing changes but the count of rewinds.
    """

    frame: int


class LockstepTaste(PayloadBase, frozen=True):
    """From the next frame on, be as daring as this; see ``LockstepStart``."""

    temperature: float | None
    top_k: int | None = None


class LockstepFreeze(PayloadBase, frozen=True):
    """Stop a stream's ticks, or let them go on; what is heard while they stand still is lost."""

    frozen: bool


class LockstepFrame(PayloadBase, frozen=True):
    """What a model says at one tick of its stream, silence included.

    Args:
        number: Ticks of this stream before it; those while frozen do not count.
        pcm: s16le mono at the model's rate, always a whole frame.
        text: Of the words that begin in it; mostly none.
        token: The text token itself; ``codes``: what the codec was given, ``heard``: what it made
            of the person's audio.
        rewinds: How many rewinds the stream has gone through: an earlier frame with fewer may
            be one that was taken back.
    """

    number: int
    pcm: bytes
    text: str = ""
    token: int = 0
    codes: tuple[int, ...] = ()
    heard: tuple[int, ...] = ()
    rewinds: int = 0


class LockstepNews(PayloadBase, frozen=True):
    """What became of a stream's frames so far; comes about once a second.

    Args:
        sees_frames: How far back the model sees, since memory had to be taken from it; 0: it has
            all of its window.
    """

    counts: FrameCounts
    sees_frames: int = 0


Payload = (
    AudioChunk
    | VoiceActivity
    | EndOfTurn
    | DecodeSpeech
    | Transcript
    | ChatRequest
    | TextDelta
    | ToolCallDelta
    | TokenUsage
    | SpeakText
    | SpeechMark
    | CodeFrames
    | BeginAnswer
    | AnswerWords
    | LockstepStart
    | LockstepRewind
    | LockstepTaste
    | LockstepFreeze
    | LockstepFrame
    | LockstepNews
    | DrawImage
    | MakeVideo
    | MakeSound
    | StepsDone
    | ImageData
    | VideoData
    | SoundData
    | DecideActions
    | ActionChunk
)
"""What only occurs inside another payload, as ``ChatMessage`` does, is no member."""
