from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from duologue.protocol.commands import CreateItem
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.items import InputAudio, InputText, MessageItem
from duologue.sessions.owners import ANYBODY
from duologue.sessions.resumption.checkpoints import (
    SUFFIX,
    Checkpoint,
    CheckpointFolder,
    checkpoint_of,
)
from duologue.sessions.settings import SessionSettings
from tests.fakes.call import FakeCall
from tests.fakes.plugin import FakePlugin

NOW = 1_700_000_000.0


def call(*, resumable: bool = True, seed: int = 0) -> FakeCall:
    made = FakeCall(
        FakePlugin(),
        settings=SessionSettings(rollover_bytes=1 << 20),
        patch=DuplexPatch(instructions="Be brief."),
        resumable=resumable,
        seed=seed,
    )
    said = (InputText(text="Remember the number seven."),)
    made.send(CreateItem(item=MessageItem(id="item_1", role="user", content=said)))
    return made


def folder(path: Path, *, max_files: int = 8, max_bytes: int = 1 << 16) -> CheckpointFolder:
    return CheckpointFolder(path, max_files=max_files, max_bytes=max_bytes, max_age_s=600)


def data_of(made: FakeCall, wall_time: float = NOW) -> bytes:
    data = checkpoint_of(made.session, wall_time)
    assert data is not None
    return data


def test_a_conversation_comes_back_as_it_was(tmp_path: Path) -> None:
    made, files = call(), folder(tmp_path)
    token = made.client.token
    files.write(made.session.id, data_of(made))
    (checkpoint,) = files.load(NOW + 1)
    kept = checkpoint.kept(until=5.0)
    assert kept.inheritance.session_id == made.session.id
    assert kept.inheritance.config.instructions == "Be brief."
    assert [each.item.id for each in kept.inheritance.items] == ["item_1"]
    assert (kept.owner, kept.until) == (ANYBODY, 5.0)
    assert kept.tokens.match(token) is not None
    assert kept.tokens.match("guessed") is None


def test_neither_tokens_nor_sound_are_written(tmp_path: Path) -> None:
    made = call()
    spoken = InputAudio(audio="c291bmQ=" * 20, transcript="Hello.")
    made.send(CreateItem(item=MessageItem(id="item_2", role="user", content=(spoken,))))
    folder(tmp_path).write(made.session.id, data_of(made))
    (file,) = tmp_path.glob(f"*{SUFFIX}")
    written = file.read_bytes()
    assert b"Hello." in written
    assert made.client.token.encode() not in written
    assert b"c291bmQ=" not in written
    assert made.session.id not in file.name
    assert file.stat().st_mode & 0o077 == 0


def test_a_session_that_nobody_could_go_on_with_is_not_kept() -> None:
    assert checkpoint_of(call(resumable=False).session, NOW) is None


def test_a_file_is_whole_or_as_it_was_before(tmp_path: Path) -> None:
    made, files = call(), folder(tmp_path)
    files.write(made.session.id, data_of(made))
    (tmp_path / "abc.part").write_bytes(data_of(made)[:20])
    (tmp_path / f"torn{SUFFIX}").write_bytes(data_of(made)[:20])
    (tmp_path / f"noise{SUFFIX}").write_bytes(os.urandom(200))
    assert len(files.load(NOW)) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_there_are_limits_to_age_number_and_size(tmp_path: Path) -> None:
    files = folder(tmp_path, max_files=2)
    made = call()
    for number in range(4):
        files.write(f"sess_{number}", data_of(made))
    assert len(files.load(NOW)) == 2
    assert files.load(NOW + 601) == []
    assert list(tmp_path.iterdir()) == []
    small = folder(tmp_path, max_bytes=100)
    files.write("sess_1", data_of(made))
    assert small.load(NOW) == []
    files.write("sess_1", data_of(made))
    small.write("sess_1", data_of(made))
    assert list(tmp_path.iterdir()) == []


def test_what_has_ended_is_forgotten_and_a_disk_that_is_no_disk_ends_nothing(
    tmp_path: Path,
) -> None:
    made, files = call(), folder(tmp_path)
    files.write(made.session.id, data_of(made))
    files.remove(made.session.id)
    files.remove(made.session.id)
    assert files.load(NOW) == []
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    folder(blocked / "below").write("sess_1", data_of(made))


def test_another_version_is_none_of_ours(tmp_path: Path) -> None:
    made, files = call(), folder(tmp_path)
    newer = msgspec.structs.replace(
        msgspec.msgpack.decode(data_of(made), type=Checkpoint), version=99
    )
    files.write("sess_1", msgspec.msgpack.encode(newer))
    assert files.load(NOW) == []


@pytest.mark.parametrize("rotated", [False, True])
def test_the_client_goes_on_in_another_process(tmp_path: Path, rotated: bool) -> None:
    made, files = call(), folder(tmp_path)
    if rotated:
        made.lose()
        made.resume()
    token = made.client.token
    files.write(made.session.id, data_of(made))
    other = call(seed=1)
    for checkpoint in files.load(NOW):
        other.manager.past.keep(checkpoint.kept(other.clock.now() + 30), other.clock.now())
    ticket = other.manager.claim(made.session.id, token, ANYBODY, 1)
    assert ticket is not None
