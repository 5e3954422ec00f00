"""How people reach this installation of Duologue: commands that they can paste as they stand.

A bare ``pip`` or ``duologue`` is another program, or none, for whoever has not activated the
environment that runs. This module must not know what is missing.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path


def install_command(what: str) -> str:
    """Return the command that installs something beside this Duologue.

    Args:
        what: As pip takes it; ``duologue[audio]``.
    """
    return f"{pip_program()} install '{what}'"


def pip_program() -> str:
    """Return what runs the pip of this environment."""
    return f"{_shown(Path(sys.executable))} -m pip"


def duologue_command(arguments: str) -> str:
    """Return the command line that runs this Duologue with ``arguments``."""
    return f"{duologue_program()} {arguments}"


def duologue_program() -> str:
    """Return what runs this Duologue."""
    ours = Path(sys.executable).with_name("duologue")
    found = shutil.which("duologue")
    if not ours.exists() or (found is not None and Path(found) == ours):
        return "duologue"
    return _shown(ours)


def _shown(program: Path) -> str:
    """Shorter where it lies below the place where the person stands."""
    here = Path.cwd()
    below = program.is_relative_to(here)
    return shlex.quote(str(program.relative_to(here) if below else program))
