from __future__ import annotations

from pathlib import Path

import pytest

from duologue.core.errors import ConfigError
from duologue.jobs.files import JobFiles


def test_a_result_is_there_when_it_is_whole(tmp_path: Path) -> None:
    files = JobFiles(tmp_path / "new" / "folder")
    files.open()
    files.begin("job_1")
    files.write("job_1", b"half")
    assert not (tmp_path / "job_1.result").exists()
    files.write("job_1", b" and half")
    assert files.finish("job_1") == 13
    with files.result("job_1") as whole, files.result("job_1", 5) as rest:
        assert (whole.read(), rest.read()) == (b"half and half", b"and half")
    files.remove("job_1")
    files.remove("job_1")
    assert not (tmp_path / "job_1.result").exists()
    files.close()


def test_what_a_killed_server_left_is_removed(tmp_path: Path) -> None:
    files = JobFiles(tmp_path)
    files.open()
    for name in ("job_1", "job_2"):
        files.begin(name)
        files.finish(name)
    files.begin("job_3")
    files.keep_only({"job_2", "job_3"})
    assert {path.name for path in tmp_path.iterdir()} == {"job_2.result", "lock"}
    files.close()


def test_two_servers_do_not_share_a_folder(tmp_path: Path) -> None:
    first, second = JobFiles(tmp_path), JobFiles(tmp_path)
    first.open()
    with pytest.raises(ConfigError, match="another server"):
        second.open()
    first.close()
    second.open()
    second.close()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file"):
        JobFiles(tmp_path / "file" / "jobs").open()
