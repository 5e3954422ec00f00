"""What a model can be told of who it is, and of how it draws its words and sounds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """What the session may let a client change of it.

    Args:
        reads_instructions: It can be told who to be.
        stays: Once it has spoken, its voice, its instructions and its seed are what they were; the
            session refuses to change them.
        sampling: ``Draws`` have an effect.
    """

    reads_instructions: bool = True
    stays: bool = False
    sampling: bool = False


ANYBODY = Persona()
"""It becomes what it is told to be with its next answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """How a model draws, beside its temperature.

    Args:
        top_k: Among how many of the likeliest; ``None``: as it likes.
        seed: What is drawn depends on it; ``None``: another one in each session.
    """

    top_k: int | None = None
    seed: int | None = None


AS_IT_LIKES = Draws()
