from __future__ import annotations

from pathlib import Path

import pytest

from duologue.commands.demo.server import ServerFailed, WorkerReady, read_progress, running_server

CONFIG = """
models: [{name: echo, plugin: echo}]
engine: {pipelines: [scripted]}
"""


async def test_a_server_is_started_watched_and_stopped(tmp_path: Path) -> None:
    config, log = tmp_path / "config.yaml", tmp_path / "server.log"
    config.write_text(CONFIG)
    loaded: list[str] = []

    def note(ready: WorkerReady) -> None:
        loaded.append(ready.worker)

    async with running_server(log, note, arguments=("--config", str(config))) as url:
        assert url.startswith("http://localhost:")
    assert sorted(loaded) == ["scripted.tones/0", "scripted.words/0"]
    assert "stopping" in log.read_text()


async def test_a_server_that_cannot_start_leaves_its_last_words(tmp_path: Path) -> None:
    arguments = ("--gateway.prot", "1")
    with pytest.raises(ServerFailed, match=r"(?s)ended before it was ready.*gateway\.prot"):
        async with running_server(tmp_path / "log", lambda _: None, arguments=arguments):
            pass


async def test_a_server_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match=r"not ready within 0 s. It said nothing."):
        async with running_server(tmp_path / "log", lambda _: None, start_timeout_s=0.01):
            pass


def test_progress_is_read_from_the_log() -> None:
    line = '{"event": "worker_ready", "worker": "asr/0", "took_s": 2.5, "level": "info"}\n'
    assert read_progress(line) == WorkerReady("asr/0", 2.5)
    assert read_progress('{"event": "session_opened"}') is None
    assert read_progress("ready: http://localhost:1") is None
