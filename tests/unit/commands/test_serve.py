from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from duologue.commands import serve
from duologue.core.errors import ConfigError

CONFIG = """
models: [{name: echo, plugin: echo}]
engine: {pipelines: [scripted]}
gateway: {port: 0}
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_says_where_it_is_and_ends_when_it_is_asked_to(
    tmp_path: Path, number: signal.Signals
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    command = [sys.executable, "-m", "duologue", "serve", "--config", str(config)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("ready: http://localhost:"):
                process.send_signal(number)
        assert process.wait() == 0
    assert said[-1].startswith("stopping")
    told = next(at for at, line in enumerate(said) if line.startswith("2 models loaded in "))
    assert {line.split()[0] for line in said[told + 1 : told + 3]} == {
        "scripted.words/0",
        "scripted.tones/0",
    }


def test_a_server_with_a_development_certificate_says_how_to_trust_it(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    command = [sys.executable, "-m", "duologue", "serve", "--tls", "dev", "--config", str(config)]
    environment = {**os.environ, "DUOLOGUE_CACHE": str(tmp_path)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("ready: https://localhost:"):
                process.send_signal(signal.SIGHUP)
            elif line.startswith("the certificate was read again"):
                (tmp_path / "tls/dev.key").unlink()
                process.send_signal(signal.SIGHUP)
            elif line.startswith("the certificate stays"):
                process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    assert f"NODE_EXTRA_CA_CERTS={tmp_path / 'tls/dev.pem'}" in "".join(said)


def test_files_of_a_certificate_have_short_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUOLOGUE_ENGINE__PIPELINES", "[]")  # no weights are asked for
    parser = argparse.ArgumentParser()
    serve.register(parser.add_subparsers())
    absent = str(tmp_path / "absent.pem")
    args = parser.parse_args(["serve", "--tls.certificate", absent, "--tls.key", absent])
    with pytest.raises(ConfigError, match="absent"):
        serve.run(args)


def test_settings_that_cannot_be_used_are_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parser = argparse.ArgumentParser()
    serve.register(parser.add_subparsers())
    monkeypatch.setenv("DUOLOGUE_GATEWAY__PORT", "-1")
    with pytest.raises(ConfigError, match="port"):
        serve.run(parser.parse_args(["serve"]))
