from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

from duologue.composition.orders import HostOrder, HostReady, LoopTurns, read_report, write_line
from tests.patience import PATIENCE_S

CONFIG = {
    "models": [{"name": "echo", "plugin": "echo"}],
    "engine": {"pipelines": ["scripted"]},
    "gateway": {"port": 0, "drain_timeout_s": 0},
}


def test_a_part_does_what_its_order_says_until_nobody_wants_it(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(CONFIG))
    command = [sys.executable, "-m", "duologue", "serve", "--config", str(config), "--part"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        order = HostOrder(name="host", socket=str(tmp_path / "host.sock"))
        process.stdin.write(write_line(order))
        process.stdin.flush()
        assert isinstance(read_report(process.stdout.readline()), HostReady)
        assert [read_report(process.stdout.readline()) for _ in range(2)] == [LoopTurns()] * 2
        process.stdin.close()
        assert process.wait() == 0


def test_without_an_order_it_says_how_it_is_started(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(CONFIG))
    command = [sys.executable, "-m", "duologue", "serve", "--config", str(config), "--part"]
    done = subprocess.run(
        command, input=b"", capture_output=True, check=False, timeout=3 * PATIENCE_S
    )
    assert done.returncode == 2
    assert b"--edges" in done.stderr
