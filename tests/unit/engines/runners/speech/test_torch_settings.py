from __future__ import annotations

import pytest
import torch

from duologue.core.errors import ConfigError
from duologue.engines.runners.speech.loading import SpeechSettings
from duologue.engines.runners.speech.torch_settings import device_of, dtype_of, use_threads

pytestmark = pytest.mark.speech


def test_names_become_what_torch_calls_so() -> None:
    settings = SpeechSettings(folder="f", dtype="bfloat16", threads=1)
    assert dtype_of(settings) is torch.bfloat16
    assert device_of(settings) == torch.device("cpu")
    use_threads(settings)
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize("device", ["cuda:99", "abacus"])
def test_a_device_that_is_not_there_is_named(device: str) -> None:
    with pytest.raises(ConfigError, match=device):
        device_of(SpeechSettings(folder="f", device=device))
