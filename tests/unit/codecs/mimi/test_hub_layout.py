from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import CsmForConditionalGeneration

from duologue.codecs.mimi.hub_layout import load_decoder, read_config
from duologue.codecs.mimi.streams import DecoderStream
from duologue.core.errors import ConfigError
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from tests.fakes.tiny_speech.csm import BOOKS, CODES

pytestmark = pytest.mark.speech

FRAMES = 30


def test_it_decodes_step_by_step_what_the_library_decodes_at_once(
    tiny_speech: Callable[[str], Path],
) -> None:
    path = tiny_speech("csm")
    codes = torch.randint(CODES, (1, BOOKS, FRAMES), generator=torch.Generator().manual_seed(1))
    theirs = CsmForConditionalGeneration.from_pretrained(path).eval().codec_model
    with CheckpointFolder(path) as folder:
        weights = load_decoder(folder.section("codec_config"), folder.tensor, "codec_model.")
    stream = DecoderStream(weights, 1, 1)
    slot = torch.tensor([0])
    with torch.inference_mode():
        expected = theirs.decode(codes).audio_values[:, 0]
        parts = [stream.step_rows(codes[:, :, at : at + 1], slot) for at in range(FRAMES)]
    torch.testing.assert_close(torch.cat(parts, dim=1), expected, atol=5e-6, rtol=0)


def test_a_mimi_of_another_kind_is_refused(tiny_speech: Callable[[str], Path]) -> None:
    with CheckpointFolder(tiny_speech("csm")) as folder:
        section = dict(folder.section("codec_config"))
    assert read_config(section).codebooks == BOOKS
    with pytest.raises(ConfigError, match="use_causal_conv"):
        read_config({**section, "use_causal_conv": False})
    with pytest.raises(ConfigError, match="cannot be"):
        read_config({**section, "num_quantizers": 1})
    del section["codebook_size"]
    with pytest.raises(ConfigError, match="codebook_size"):
        read_config(section)
