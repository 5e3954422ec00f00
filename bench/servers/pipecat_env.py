"""The virtual environment in which pipecat runs, made on demand outside the repository.

pipecat pins versions (protobuf, numba, openai, Pillow) that Duologue does not want, so it never
shares an environment with it.
"""

import subprocess
import sys
import venv
from pathlib import Path

from cache import bench_cache

PIPECAT_VERSION = "1.14.0"
REQUIREMENTS = (f"pipecat-ai[websocket]=={PIPECAT_VERSION}", "uvicorn[standard]", "fastapi")


def pipecat_python() -> Path:
    """The interpreter of pipecat's environment; the first call installs it (a few minutes).

    Raises:
        subprocess.CalledProcessError: pip could not install it; its message is on the terminal.
    """
    folder = (
        bench_cache() / f"pipecat-{PIPECAT_VERSION}-py{sys.version_info[0]}{sys.version_info[1]}"
    )
    python, ready = folder / "bin" / "python", folder / "ready"
    if ready.exists():
        return python
    print(f"installing pipecat {PIPECAT_VERSION} into {folder} (once, a few minutes)", flush=True)
    venv.create(folder, with_pip=True, clear=True)
    subprocess.run(
        [python, "-m", "pip", "install", "--disable-pip-version-check", *REQUIREMENTS], check=True
    )
    ready.touch()
    return python
