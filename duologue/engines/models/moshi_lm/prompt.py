"""What a stream has lived through before the person's first frame. Pure; needs no torch.

Moshi begins with nothing. PersonaPlex is given a voice and a persona, as frames in which it says
what a recording says, then nothing, then nothing while the persona is read to it, then nothing; and
in all of them it hears a tone.

Source:
    ``LMGen.step_system_prompts`` in github.com/NVIDIA/personaplex at 3428dfd.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from duologue.engines.models.moshi_lm.config import MoshiConfig
from duologue.engines.models.moshi_lm.token_grid import Frame, Row, first_frame, rows

SILENT_FRAMES = 6
"""Half a second, rounded down to frames."""

TAG = "<system>"


class VoiceEnd(NamedTuple):
    """The last frame of a voice, and the row of its position."""

    row: Row
    frame: Frame


class Prompt(NamedTuple):
    """Rows to be read before the first step, and the frame that they end with.

    Args:
        rows: In order; where a voice comes first, they follow its rows.
        last: The frame of the last row, for ``TokenGrid``.
    """

    rows: list[Row]
    last: Frame


def moshi_prompt(config: MoshiConfig) -> Prompt:
    """Return the beginning of a stream that has no prompt: one row before everything."""
    first = first_frame(config)
    return Prompt(rows(config, [first], first), first)


def personaplex_prompt(
    config: MoshiConfig,
    text: Sequence[int],
    voice: VoiceEnd | None = None,
    silent_frames: int = SILENT_FRAMES,
) -> Prompt:
    """Return the rows of a persona.

    Args:
        text: Its tokens, of ``wrapped`` text; none: no persona.
        voice: Where the voice's own rows end.
    """
    silent = Frame(config.text_padding, config.silence, config.sine)
    frames = [silent] * silent_frames
    frames += [Frame(token, config.silence, config.sine) for token in text]
    frames += [silent] * silent_frames
    if voice is not None:
        return Prompt([voice.row, *rows(config, frames, voice.frame)], frames[-1])
    frames[0] = first_frame(config)
    return Prompt(rows(config, frames, frames[0]), frames[-1])


def wrapped(persona: str) -> str:
    """Return the text that the tokenizer must be given for a persona."""
    persona = persona.strip()
    if persona.startswith(TAG) and persona.endswith(TAG):
        return persona
    return f"{TAG} {persona} {TAG}"
