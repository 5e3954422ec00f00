"""A caller who uses vLLM-Omni's own duplex client, unmodified, as `make peer` unpacks it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(sys.prefix) / "share" / "vllm-omni-client"


def peer_client() -> Any:
    """The module of the client."""
    assert FOLDER.is_dir(), "its client is not here: run make peer"
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return importlib.import_module("vllm_omni.clients.duplex")
