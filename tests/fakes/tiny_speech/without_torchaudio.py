"""Stands in for torchaudio, before ``qwen_tts`` is imported.

Only that package's other codec needs it, and it has builds for few builds of torch.
"""

from __future__ import annotations

import sys
from types import ModuleType

import transformers  # looks which packages there are, so it goes first

PINNED = transformers.__version__

for _name in ("torchaudio", "torchaudio.compliance", "torchaudio.compliance.kaldi"):
    sys.modules.setdefault(_name, ModuleType(_name))
