from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from duologue.artifacts.errors import ArtifactMissing
from duologue.artifacts.progress import Silence
from duologue.artifacts.published import (
    Finding,
    Published,
    PublishedFile,
    check,
    find,
    load_published,
    parse_published,
    state,
)

CONTENT = b"weights"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def model(*files: PublishedFile, gated: bool = True) -> Published:
    return Published(
        id="big-model",
        pipeline="big",
        role="lockstep",
        description="A big model",
        licence="A licence of its own",
        upstream="somebody/big-model",
        revision="0" * 40,
        page="https://example.org/big-model",
        files=files,
        gated=gated,
    )


KNOWN = PublishedFile(name="model.bin", size_bytes=len(CONTENT), sha256=DIGEST)
UNPINNED = PublishedFile(name="model.bin")
ARCHIVE = PublishedFile(name="voices.tgz", size_bytes=5, sha256=DIGEST, unpacked="voices")


def found(tmp_path: Path, *files: PublishedFile) -> list[Finding]:
    return [each.finding for each in check(model(*files), [tmp_path], Silence())]


def put(tmp_path: Path, name: str, content: bytes) -> Path:
    path = tmp_path / "big-model" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_every_model_of_the_list_pins_a_revision_and_its_pipeline_is_known_by_both_names() -> None:
    for each in load_published():
        assert find(each.id) == find(each.pipeline) == each
        assert any(file.name == "model.safetensors" for file in each.files)
    assert find("silero-vad") is None


def test_the_size_of_a_model_is_told_only_where_that_of_every_file_is_known() -> None:
    assert model(KNOWN, ARCHIVE).size_bytes == len(CONTENT) + 5
    assert model(KNOWN, PublishedFile(name="other.bin")).size_bytes is None


def test_the_right_bytes_are_right(tmp_path: Path) -> None:
    put(tmp_path, "model.bin", CONTENT)
    assert found(tmp_path, KNOWN) == [Finding.RIGHT]


@pytest.mark.parametrize("content", [b"Weights", b"weights of another size"])
def test_wrong_bytes_are_told_of_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path, "model.bin", content)
    (wrong,) = check(model(KNOWN), [tmp_path], Silence())
    assert wrong.failed
    assert wrong.finding is Finding.WRONG
    assert path.read_bytes() == content


def test_without_a_known_hash_the_one_that_was_found_is_told(tmp_path: Path) -> None:
    put(tmp_path, "model.bin", CONTENT)
    (each,) = check(model(UNPINNED), [tmp_path], Silence())
    assert (each.finding, each.failed) == (Finding.UNKNOWN, False)
    assert DIGEST in each.text
    assert "no hash is known" in each.text


def test_an_archive_may_be_gone_once_it_is_unpacked(tmp_path: Path) -> None:
    put(tmp_path, "model.bin", CONTENT)
    assert found(tmp_path, KNOWN, ARCHIVE) == [Finding.RIGHT, Finding.MISSING]
    assert state(model(KNOWN, ARCHIVE), [tmp_path]) == "incomplete, 1 of 2 files"
    put(tmp_path, "voices/one.pt", b"")
    assert found(tmp_path, KNOWN, ARCHIVE) == [Finding.RIGHT, Finding.UNPACKED]
    assert state(model(KNOWN, ARCHIVE), [tmp_path]) == "here"


@pytest.mark.parametrize("gated", [True, False])
def test_who_has_nothing_of_it_is_told_every_step(tmp_path: Path, gated: bool) -> None:
    wanted = model(KNOWN, ARCHIVE, gated=gated)
    assert state(wanted, [tmp_path]) == "not here"
    with pytest.raises(ArtifactMissing) as caught:
        list(check(wanted, [tmp_path], Silence()))
    text = caught.value.message
    assert str(tmp_path) in text
    assert ("hf auth login" in text) is gated
    assert f"--revision {'0' * 40}" in text
    assert "tar -xzf FOLDER/big-model/voices.tgz" in text
    steps = [line.split(".")[0].strip() for line in text.splitlines() if line.startswith("  ")]
    assert steps == [str(number + 1) for number in range(len(steps))]


def test_a_revision_that_is_no_commit_is_refused() -> None:
    text = msgspec.yaml.encode([model(KNOWN)]).decode().replace("'" + "0" * 40 + "'", "main")
    with pytest.raises(msgspec.ValidationError, match="revision"):
        parse_published(text)
