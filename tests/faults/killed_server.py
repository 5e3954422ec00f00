"""A server that makes videos without a model, to be killed. Prints its address."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from duologue.app import running_app
from duologue.jobs.settings import JobSettings
from tests.fakes.media_gateway import media_settings


async def main(folder: Path) -> None:
    jobs = JobSettings(folder=folder, max_running=1, max_attempts=2)
    async with running_app(media_settings(jobs=jobs)) as app:
        sys.stdout.write(f"port {app.url.rpartition(':')[2]}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
