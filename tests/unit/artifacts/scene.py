"""A small world of artifacts: tiny wheels, a hub and an index on loopback, and who watches."""

from __future__ import annotations

import hashlib
import random
import threading
import zipfile
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path

from duologue.artifacts.errors import SourceUnavailable
from duologue.artifacts.manifest import (
    Artifact,
    Attribution,
    File,
    Kind,
    Licence,
    Manifest,
    Part,
    Upstream,
    Wheel,
)
from duologue.artifacts.progress import ProgressTask
from duologue.artifacts.settings import ArtifactSettings, SourceKind
from duologue.artifacts.store import Store
from tests.unit.artifacts.file_server import FileServer

REVISION = "0123456789abcdef0123456789abcdef01234567"


def some_bytes(length: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(length)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def wheel_bytes(name: str, version: str, members: dict[str, bytes]) -> bytes:
    """A wheel that pip accepts."""
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    everything = {
        # Would be seen at once if anybody imported it.
        f"{name.replace('-', '_')}/__init__.py": b"raise SystemExit('imported')",
        **members,
        f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{folder}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{folder}/RECORD": b"",
    }
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in everything.items():
            archive.writestr(zipfile.ZipInfo(path), content)
    return buffer.getvalue()


class FakeIndex:
    """Tells addresses on a FileServer; its pip can be made to give the file too."""

    def __init__(self, server: FileServer) -> None:
        self.server = server
        self.located = 0
        self.fetched: list[str] = []
        self.knows_addresses = True
        self.pip_gives: dict[str, bytes] = {}

    def locate(self, wheels: Sequence[Wheel]) -> dict[str, str]:
        self.located += 1
        if not self.knows_addresses:
            return {}
        return {wheel.name: f"{self.server.url}/files/{wheel.file}" for wheel in wheels}

    def fetch(
        self, wheel: Wheel, folder: Path, watch: Callable[[int], None], cancel: threading.Event
    ) -> Path:
        self.fetched.append(wheel.name)
        if wheel.name not in self.pip_gives:
            raise SourceUnavailable(f"pip cannot load {wheel.requirement}")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / wheel.file
        path.write_bytes(self.pip_gives[wheel.name])
        return path


class Watcher:
    """Keeps what a ProgressSink is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.tasks: dict[str, _WatchedTask] = {}
        self.on_line: Callable[[str], None] = lambda line: None
        self.on_bytes: Callable[[str, int], None] = lambda label, done_bytes: None

    def begin(self, label: str, total_bytes: int, done_bytes: int = 0) -> ProgressTask:
        task = self.tasks[label] = _WatchedTask(self, label, total_bytes)
        return task

    def say(self, line: str) -> None:
        self.lines.append(line)
        self.on_line(line)


class _WatchedTask:
    def __init__(self, watcher: Watcher, label: str, total_bytes: int) -> None:
        self._watcher = watcher
        self._label = label
        self.total_bytes = total_bytes
        self.steps: list[int] = []
        self.is_over = False

    def at(self, done_bytes: int) -> None:
        self.steps.append(done_bytes)
        self._watcher.on_bytes(self._label, done_bytes)

    def end(self) -> None:
        self.is_over = True


class Scene:
    """Two artifacts: ``voice`` (one file joined of two wheels) and ``ear`` (two files, one wheel).

    ``ear`` and the first part of ``voice`` share a wheel. Both are on the hub too.
    """

    def __init__(self, tmp_path: Path, server: FileServer) -> None:
        self.tmp_path = tmp_path
        self.server = server
        self.index = FakeIndex(server)
        self.watcher = Watcher()
        self.cancel = threading.Event()
        head, tail = some_bytes(300_000, seed=1), some_bytes(200_000, seed=2)
        self.voice = head + tail
        self.ear = {"model.bin": some_bytes(400_000, seed=3), "tokens.txt": b"a b c\n" * 100}
        self.wheel_content = {
            "two-models": wheel_bytes(
                "two-models",
                "1.0",
                {
                    "two_models/part1.bin": head,
                    **{f"two_models/{name}": content for name, content in self.ear.items()},
                },
            ),
            "voice-part2": wheel_bytes("voice-part2", "1.0", {"voice_part2/part2.bin": tail}),
        }
        self.wheels = tuple(
            Wheel(
                name=name,
                version="1.0",
                file=f"{name.replace('-', '_')}-1.0-py3-none-any.whl",
                size_bytes=len(content),
                sha256=sha256(content),
            )
            for name, content in self.wheel_content.items()
        )
        for wheel in self.wheels:
            server.add(self.wheel_path(wheel.name), self.wheel_content[wheel.name])
        server.add(f"/org/voice/resolve/{REVISION}/voice.gguf", self.voice)
        for name, content in self.ear.items():
            server.add(f"/org/ear/resolve/{REVISION}/{name}", content)
        self.manifest = Manifest(
            profiles={"default": ("voice", "ear", "lib"), "small": ("ear",)},
            wheels=self.wheels,
            artifacts=(self._voice(), self._ear(), self._library()),
        )

    def wheel_path(self, name: str) -> str:
        return f"/files/{self.wheel(name).file}"

    def wheel(self, name: str) -> Wheel:
        return next(wheel for wheel in self.wheels if wheel.name == name)

    def settings(self, *sources: SourceKind, **changes: object) -> ArtifactSettings:
        values: dict[str, object] = {
            "cache_dir": self.tmp_path / "cache",
            "sources": sources or (SourceKind.PACKAGE,),
            "hub_url": self.server.url,
            "retry_wait_s": 0,
            "retries": 3,
            "timeout_s": 5,
        }
        return ArtifactSettings.model_validate({**values, **changes})

    def store(self, *sources: SourceKind, **changes: object) -> Store:
        return Store(self.settings(*sources, **changes), self.manifest, self.index)

    def pull(self, store: Store, *ids: str) -> None:
        store.pull(ids, self.watcher, self.cancel)

    def files_below(self, folder: str) -> list[str]:
        root = self.tmp_path / folder
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())

    def _voice(self) -> Artifact:
        return Artifact(
            id="voice",
            role="llm",
            description="A voice",
            licence=Licence(model="Apache-2.0"),
            upstream=Upstream(name="org/voice", revision=REVISION, on_hub=True),
            entry="voice.gguf",
            fallback="ear",
            files=(
                File(
                    name="voice.gguf",
                    size_bytes=len(self.voice),
                    sha256=sha256(self.voice),
                    parts=(
                        Part(wheel="two-models", member="two_models/part1.bin"),
                        Part(wheel="voice-part2", member="voice_part2/part2.bin"),
                    ),
                ),
            ),
            attributions=(Attribution(work="Voice", licence="Apache-2.0", copyright="(c) V"),),
        )

    def _ear(self) -> Artifact:
        return Artifact(
            id="ear",
            role="asr",
            description="An ear",
            licence=Licence(model="MIT"),
            upstream=Upstream(name="org/ear", revision=REVISION, on_hub=True),
            files=tuple(
                File(
                    name=name,
                    size_bytes=len(content),
                    sha256=sha256(content),
                    parts=(Part(wheel="two-models", member=f"two_models/{name}"),),
                )
                for name, content in self.ear.items()
            ),
            attributions=(Attribution(work="Ear", licence="MIT", copyright="(c) E"),),
        )

    def _library(self) -> Artifact:
        """The licence of PyYAML, which is installed wherever these tests run."""
        import yaml

        path = Path(yaml.__file__)
        content = path.read_bytes()
        return Artifact(
            id="lib",
            kind=Kind.LIBRARY,
            role="tts",
            description="A library",
            licence=Licence(model="MIT", code="MIT"),
            upstream=Upstream(name="PyYAML", revision=yaml.__version__),
            distribution="PyYAML",
            entry="yaml.py",
            files=(
                File(
                    name="yaml.py",
                    size_bytes=len(content),
                    sha256=sha256(content),
                    member="yaml/__init__.py",
                ),
            ),
            attributions=(),
        )
