"""Settings of the cascaded plugin."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from duologue.config import Section

Words = Annotated[int, Field(ge=1, le=200)]


class Example(Section):
    """One exchange that shows the language model how to answer."""

    user: str
    """What a person says."""

    assistant: str
    """What the assistant answers."""


class ClauseSettings(Section):
    """How long a clause may grow before it is spoken."""

    first_pause_words: Words = 1
    """The first clause ends at a comma after at least so many words ..."""

    first_break_words: Words = 3
    """... or before a word that begins a phrase, after at least so many ..."""

    first_most_words: Words = 5
    """... or wherever a speaker could stop, after so many. More sound better and come later."""

    most_words: Words = 40
    """No clause is longer."""


class CascadedSettings(Section):
    """Who answers, and how."""

    llm_pipeline: str = "llm"
    """Pipeline of the language model."""

    llm_adapter: str = ""
    """Weights laid over the language model's (LoRA), by the name that its stage gives them; several
    models with different ones can share a stage."""

    tts_pipeline: str = "tts"
    """Pipeline of the synthesiser."""

    voices: Annotated[tuple[str, ...], Field(min_length=1)] = ("default",)
    """Voices that the synthesiser has; the first one speaks where a client asks for none."""

    slowest_speech: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Slowest speed of the synthesiser; single requests are stretched to what it cannot do."""

    fastest_speech: Annotated[float, Field(ge=1, le=4)] = 2.0
    """Its fastest."""

    sees: bool = False
    """The language model understands pictures: its pipeline must be one that does."""

    picture_tokens: Annotated[int, Field(ge=0, le=100_000)] = 400
    """What a picture counts as in ``prompt_tokens``: about 640 by 480 pixels for most models."""

    persona: str = (
        "You are Duologue, a helpful voice assistant. Answer briefly in plain spoken English."
    )
    """First words of every prompt; the client's instructions come after the examples."""

    examples: tuple[Example, ...] = (
        Example(user="Hello there.", assistant="Hello! How can I help you today?"),
        Example(user="What is the capital of Japan?", assistant="The capital of Japan is Tokyo."),
        Example(
            user="Can you suggest a film?",
            assistant="Sure, you could watch The Lion King. It is a classic family film.",
        ),
        Example(
            user="How do I make tea?",
            assistant="Boil some water, pour it over a tea bag, wait three minutes, and enjoy.",
        ),
    )
    """A small model copies their length and tone; a large one needs none. They are left out where
    the client offers functions."""

    greeting: str = ""
    """Spoken when a session begins; empty: the person speaks first."""

    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Zero: the same question gets the same answer."""

    max_output_tokens: Annotated[int, Field(ge=1, le=4096)] = 160
    """Longest answer; a client may ask for a shorter one."""

    call_rounds: Annotated[int, Field(ge=1, le=32)] = 1
    """How often in a row the model may call functions before it has to answer in words. A small
    model would call for ever; give a large one more."""

    prompt_tokens: Annotated[int, Field(ge=100)] = 1200
    """Longest prompt, as estimated from its characters; the oldest exchanges are left out."""

    speculate: bool = True
    """Begin to answer at a short silence, before the turn is known to be over. Answers at pauses
    that were none are thrown away; a server that is paid by the token is paid for them, too."""

    prefill: bool = True
    """Let the language model read the conversation while the person still speaks."""

    speech_credit_ms: Annotated[int, Field(ge=200)] = 3000
    """Speech that may be made ahead of what was sent."""

    clauses: ClauseSettings = ClauseSettings()
