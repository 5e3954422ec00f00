"""How ONNX models are opened for the CPU. This module must not know which models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from duologue.core.errors import ConfigError


def open_onnx(path: str, threads: int) -> Any:
    """Load a model; returns an ``onnxruntime.InferenceSession``.

    Its threads sleep while they wait: other models share the cores.

    Raises:
        ConfigError: There is no such file.
    """
    import onnxruntime

    if not Path(path).is_file():
        raise ConfigError(f"there is no model at {path}; `duologue models pull` fetches ours")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
