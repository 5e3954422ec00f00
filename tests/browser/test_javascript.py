"""The page's own unit tests, which need no browser: pure modules under Node."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

TESTS = sorted((Path(__file__).parent / "js").glob("*.test.mjs"))
PAGE = Path(__file__).parents[2] / "duologue" / "web_demo"
COMPILER = Path(__file__).parents[1] / "conformance/node/node_modules/typescript/bin/tsc"
TYPES = Path(__file__).parent / "js" / "types"


def node() -> str:
    path = shutil.which("node")
    assert path, "the page's unit tests need Node 18 or newer: apt-get install nodejs"
    return path


def test_the_pure_modules_of_the_page_keep_their_promises() -> None:
    outcome = subprocess.run(
        [node(), "--test", *TESTS], capture_output=True, text=True, timeout=3 * PATIENCE_S
    )
    assert outcome.returncode == 0, outcome.stdout


def test_no_module_of_the_page_is_left_out_of_these_tests_without_reason() -> None:
    """A module is pure, and imported by a test; or it touches the browser, and says so here."""
    touches_browser = {
        "main.js",
        "sdk/audio/capture-worklet.js",
        "sdk/audio/microphone.js",
        "sdk/audio/playback-worklet.js",
        "sdk/audio/playback.js",
        "sdk/audio/stream-tap.js",
        "sdk/audio/track-player.js",
        "sdk/transport/transport.js",
        "sdk/transport/webrtc.js",
        "sdk/transport/websocket.js",
        "sdk/wire/webrtc-line.js",
        "sdk/wire/websocket-line.js",
        "view/chat.js",
        "view/controls.js",
        "view/illustration.js",
        "view/latency-readout.js",
        "view/problem-card.js",
        "view/settings-panel.js",
        "view/timeline-canvas.js",
        "view/wake-lock.js",
    }
    tests = "".join(path.read_text() for path in TESTS)
    parts = ("answer-sound", "answer", "answers", "voice-input")
    indirectly = {f"sdk/call/{part}.js" for part in parts}
    modules = {path.relative_to(PAGE).as_posix() for path in PAGE.rglob("*.js")}
    tested = {module for module in modules if f"web_demo/{module}" in tests}
    assert modules - tested - indirectly == touches_browser


@pytest.mark.node
def test_the_types_of_all_modules_hold_and_a_page_in_typescript_compiles() -> None:
    assert COMPILER.is_file(), "the types are checked by TypeScript: make node"
    compile_all = [node(), COMPILER, "-p", TYPES, "--listFiles"]
    outcome = subprocess.run(compile_all, capture_output=True, text=True, timeout=3 * PATIENCE_S)
    assert outcome.returncode == 0, outcome.stdout
    checked = {Path(line) for line in outcome.stdout.splitlines()}
    assert {path for path in PAGE.rglob("*.js") if path not in checked} == set()
