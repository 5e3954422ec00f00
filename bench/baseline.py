"""The baseline chain as a child process that answers one question at a time."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from priority import go_first

SCRIPT = Path(__file__).with_name("baseline_chain.py")


class Baseline:
    """A running chain; see `baseline`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._read()

    @property
    def pid(self) -> int:
        return self._process.pid

    def turn(self, question: Path, answer: Path) -> dict[str, Any]:
        """Hear a question in real time and answer it; the speech goes to `answer`."""
        return self._ask({"do": "turn", "audio": str(question), "answer": str(answer)})

    def transcribe(self, speech: Path) -> str:
        return str(self._ask({"do": "transcribe", "audio": str(speech)})["text"])

    def _ask(self, request: dict[str, str]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the baseline ended with {self._process.wait()}")
        return dict(json.loads(line))


@contextmanager
def baseline(models: Path, *, urgent: bool = False) -> Iterator[Baseline]:
    """Start the chain, wait until its models are loaded and warm, end it afterwards.

    Args:
        models: The folder that `duologue models pull` fills.
        urgent: Run it ahead of the machine's other work (see `priority.py`).

    Raises:
        SystemExit: A model file is missing.
        RuntimeError: The chain ended; with the end of what it said.
    """
    if not models.is_dir():
        raise SystemExit(f"no models in {models}: run `duologue models pull`, or give --models")
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), "--models", str(models)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            preexec_fn=go_first if urgent else None,
        )
        try:
            yield Baseline(process)
        except RuntimeError as ended:
            said.seek(0)
            raise RuntimeError(f"{ended}: {said.read()[-2000:]}") from ended
        finally:
            process.terminate()
            process.wait()
