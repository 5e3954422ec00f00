from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from duologue.artifacts import command
from duologue.artifacts.manifest import load_manifest
from duologue.artifacts.settings import ArtifactSettings, SourceKind


class Shell:
    """Runs ``models`` with a cache of its own and no source but folders."""

    def __init__(self, tmp_path: Path) -> None:
        self.cache = tmp_path / "cache"
        self.settings = ArtifactSettings(
            cache_dir=self.cache, sources=(SourceKind.FOLDER,), folders=(tmp_path / "stick",)
        )

    def run(self, *words: str) -> int:
        parser = argparse.ArgumentParser()
        command.register(parser.add_subparsers(required=True))
        return command.run(parser.parse_args(["models", *words]), self.settings)

    def put(self, artifact_id: str) -> None:
        """Lay files of the right sizes into the cache."""
        for file in load_manifest().get(artifact_id).files:
            path = self.cache / "models" / artifact_id / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as out:
                out.truncate(file.size_bytes)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_list_shows_every_artifact_on_a_line(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.put("silero-vad")
    assert shell.run("list") == 0
    out = capsys.readouterr().out
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert set(load_manifest().ids) <= rows.keys()
    assert "ready" in rows["silero-vad"]
    qwen = rows["qwen2.5-coder-0.5b-instruct-q4_k_m"]
    for cell in ("llm", "491.4 MB", "Apache-2.0", "Instruct-GGUF@ebb2015", "missing"):
        assert cell in qwen
    assert f"kept in {shell.cache}" in out
    assert "profile small: silero-vad" in out


def test_path_prints_the_path_alone(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.put("silero-vad")
    assert shell.run("path", "silero-vad") == 0
    assert capsys.readouterr().out == f"{shell.cache}/models/silero-vad/silero_vad.onnx\n"


def test_what_is_missing_goes_to_standard_error(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run("path", "silero-vad") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "duologue models pull silero-vad" in captured.err


def test_pull_without_a_choice_takes_the_default_profile(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    for artifact_id in load_manifest().profile("default"):
        shell.put(artifact_id)
    assert shell.run("pull") == 0
    assert "5 artifacts ready, 592 MB" in capsys.readouterr().out


def test_pull_of_all_needs_the_small_model_too(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    for artifact_id in load_manifest().profile("default"):
        shell.put(artifact_id)
    assert shell.run("pull", "--all") == 1
    assert "smollm2-135m-instruct-q4_1 cannot be had" in capsys.readouterr().err


def test_a_folder_on_the_command_line_comes_first(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = tmp_path / "given"
    assert shell.run("pull", "silero-vad", "--folder", str(given), "--sources", "folder") == 1
    assert f"silero_vad.onnx is not in {given}, {tmp_path / 'stick'}" in capsys.readouterr().err


def test_verify_fails_on_a_wrong_file(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.put("silero-vad")
    assert shell.run("verify", "silero-vad") == 1
    out = capsys.readouterr().out
    assert "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3" in out
    assert "It was removed" in out


def test_an_unknown_id_or_profile_is_told(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run("pull", "nose") == 1
    assert "no artifact 'nose'" in capsys.readouterr().err
    assert shell.run("pull", "--profile", "huge") == 1
    assert "no profile 'huge'" in capsys.readouterr().err


def test_an_unknown_source_is_told(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        shell.run("pull", "--sources", "torrent")
    assert "folder, hub, package" in capsys.readouterr().err


def test_what_a_person_fetches_is_listed_with_what_is_known_of_it(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run("list") == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    for cell in ("17,134.2 MB", "NVIDIA Open Model License", "@fdaf409", "not here"):
        assert cell in rows["personaplex-7b-v1"]
    for cell in (" ? ", "CC-BY-4.0", "@2bfc9ae"):
        assert cell in rows["moshiko-pytorch-bf16"]


@pytest.mark.parametrize("action", ["pull", "verify"])
def test_what_a_person_fetches_is_never_pulled_and_the_steps_are_told(
    shell: Shell, capsys: pytest.CaptureFixture[str], action: str
) -> None:
    assert shell.run(action, "personaplex") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "accept the licence" in captured.err
    assert "hf download nvidia/personaplex-7b-v1 --revision fdaf4090" in captured.err


def test_what_a_person_has_fetched_is_checked_file_by_file(
    shell: Shell, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "stick" / "moshiko-pytorch-bf16"
    folder.mkdir(parents=True)
    for name in ("model.safetensors", "tokenizer_spm_32k_3.model"):
        (folder / name).write_bytes(b"anything")
    assert shell.run("verify", "moshi") == 1
    out = capsys.readouterr().out
    assert out.count("no hash is known here to hold it against") == 2
    assert "tokenizer-e351c8d8-checkpoint125.safetensors: missing" in out
    assert "not measured by us" in out
