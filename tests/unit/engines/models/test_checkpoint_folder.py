from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import torch
from safetensors.torch import save_file

from duologue.core.errors import ConfigError
from duologue.engines.models.checkpoint_folder import CheckpointFolder

pytestmark = pytest.mark.speech


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_file({"a": torch.arange(6.0).view(2, 3)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text('{"talker": {"text": {"size": 3}}}')
    return tmp_path


def test_a_tensor_is_read_by_its_name_in_the_type_that_is_asked_for(folder: Path) -> None:
    with CheckpointFolder(folder, dtype=torch.bfloat16) as opened:
        assert "a" in opened
        assert (opened.names("a"), opened.names("b")) == (["a"], [])
        assert opened.tensor("a", 2, 3).dtype is torch.bfloat16
        assert opened.tensor("a", dtype=torch.float32).dtype is torch.float32


def test_weights_may_lie_in_several_files(folder: Path) -> None:
    save_file({"b": torch.ones(1)}, folder / "second.safetensors")
    (folder / "model.safetensors").rename(folder / "first.safetensors")
    index = {"weight_map": {"a": "first.safetensors", "b": "second.safetensors"}}
    (folder / "model.safetensors.index.json").write_bytes(msgspec.json.encode(index))
    with CheckpointFolder(folder) as opened:
        assert opened.tensor("a").shape == (2, 3)
        assert opened.tensor("b").item() == 1


def test_a_missing_weight_and_one_of_another_shape_are_named(folder: Path) -> None:
    with CheckpointFolder(folder) as opened:
        with pytest.raises(ConfigError, match="no weight b"):
            opened.tensor("b")
        with pytest.raises(ConfigError, match=r"a is \[2, 3\], must be \[3, 2\]"):
            opened.tensor("a", 3, 2)


def test_a_section_is_found_or_named(folder: Path) -> None:
    with CheckpointFolder(folder) as opened:
        assert opened.section("talker", "text") == {"size": 3}
        with pytest.raises(ConfigError, match=r"no section talker\.codec"):
            opened.section("talker", "codec")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("content", [None, b"\x00broken"], ids=["missing", "broken"])
def test_what_cannot_be_read_is_named(folder: Path, name: str, content: bytes | None) -> None:
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(ConfigError, match=name):
        CheckpointFolder(folder)
