"""Which WebRTC library is used, loaded and tried out before the first call needs it.

The first import of one takes seconds. This module must not know how either works.
"""

from __future__ import annotations

import asyncio
import importlib
from types import ModuleType

from duologue.core.installation import install_command
from duologue.gateway.webrtc.peer import Backend, BackendMissing
from duologue.gateway.webrtc.settings import WebRtcSettings
from duologue.telemetry import get_logger

BACKENDS = ("aiortc", "libdatachannel")
"""In the order in which they are tried; ADR 14 says why the cheaper one is not first."""

HOW_TO_INSTALL = f"install a WebRTC library: {install_command('duologue[webrtc]')}"


async def load_backend(settings: WebRtcSettings) -> Backend:
    """Load the library that the settings ask for, or the best one that is there.

    Raises:
        BackendMissing: There is none.
        ConfigError: It is there, and not as we need it.
    """
    wanted = BACKENDS if settings.backend == "auto" else (settings.backend,)
    for name in wanted:
        module = await asyncio.to_thread(_import, f"duologue.gateway.webrtc.{name}_peer")
        if module is not None:
            backend: Backend = await module.try_out(settings)
            get_logger("gateway").info("webrtc_ready", backend=backend.name)
            return backend
    nothing = settings.backend == "auto"
    what = "no WebRTC library is" if nothing else f"{settings.backend!r} is not"
    raise BackendMissing(f"{what} installed; {HOW_TO_INSTALL}")


def _import(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
