from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from duologue.commands.doctor.probes import (
    available_memory,
    can_be_written,
    existing_parent,
    is_for_python,
    look,
    missing_packages,
    probe_port,
    requirement_extra,
    requirement_name,
)


def test_this_machine_can_be_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUOLOGUE_CACHE", str(tmp_path / "cache"))
    facts = look(verify=True, port=0)
    assert facts.python >= (3, 11)
    assert facts.cores >= 1
    assert facts.free_disk_bytes > 0
    assert facts.cache_dir == str(tmp_path / "cache")
    assert facts.cache_writable
    assert facts.port.taken_by == ""
    assert {extra.name for extra in facts.extras} == {
        *("server", "local", "audio", "webrtc", "ray")
    }
    assert {weight.state for weight in facts.weights if not weight.is_library} == {"missing"}


def test_the_tests_run_where_the_server_is_installed() -> None:
    assert missing_packages("server") == ()
    assert missing_packages("no such extra") == ()


@pytest.mark.parametrize(
    ("requirement", "package", "extra"),
    [
        ("aiohttp<3.15,>=3.14.3", "aiohttp", ""),
        ("duologue[server]", "duologue", "server"),
        ("pydantic-settings[yaml]>=2.12", "pydantic-settings", "yaml"),
        ("numpy", "numpy", ""),
    ],
)
def test_a_requirement_names_a_package_and_perhaps_an_extra(
    requirement: str, package: str, extra: str
) -> None:
    assert requirement_name(requirement) == package
    assert requirement_extra(requirement) == extra


def test_a_package_may_be_for_newer_pythons_only() -> None:
    condition = ' python_version >= "3.12" and extra == "webrtc"'
    assert not is_for_python(condition, (3, 11))
    assert is_for_python(condition, (3, 12))
    assert is_for_python(' extra == "webrtc"', (3, 11))


def test_memory_is_read_where_the_system_tells(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 100 kB\nMemAvailable:   2048 kB\n")
    assert available_memory(meminfo) == 2048 * 1024
    meminfo.write_text("MemAvailable: much\n")
    assert available_memory(meminfo) is None
    assert available_memory(tmp_path / "none") is None


def test_a_folder_that_is_still_to_be_made_lies_in_one_that_exists(tmp_path: Path) -> None:
    assert existing_parent(tmp_path / "a" / "b") == tmp_path
    assert existing_parent(tmp_path) == tmp_path


def test_a_folder_whose_name_a_file_has_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert can_be_written(tmp_path / "new" / "folder")
    assert not can_be_written(tmp_path / "file")
    assert not can_be_written(tmp_path / "file" / "folder")


def test_a_free_port_is_free() -> None:
    assert probe_port("127.0.0.1", 0).taken_by == ""


def test_a_port_that_may_not_be_taken_says_why() -> None:
    assert probe_port("192.0.2.1", 8080).taken_by != ""


def test_a_program_that_speaks_no_http_is_another_program() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]

        def hang_up() -> None:
            connection, _ = listener.accept()
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        assert probe_port("127.0.0.1", port).taken_by == "another program"
        thread.join()


@pytest.mark.parametrize(
    ("page", "who"),
    [
        (b'{"data": [{"id": "m", "owned_by": "duologue"}]}', "duologue"),
        (b'{"data": [{"id": "m"}]}', "Tester"),
        (b"hello", "Tester"),
    ],
)
def test_a_duologue_is_told_from_other_web_servers(page: bytes, who: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(page)

        def version_string(self) -> str:
            return "Tester"

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        assert probe_port("127.0.0.1", server.server_port).taken_by == who
        thread.join()
