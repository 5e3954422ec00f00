"""What the server never does with what comes from outside; held by reading its code.

Each of these would be a short line that works, and a hole.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "duologue"

HEARS_CLIENTS = ("gateway", "hosts", "sessions", "protocol", "duplex_plugins", "codecs")
"""Folders through which what clients send passes."""

RUNS_WHAT_IT_READS = {
    f"{module}.{name}"
    for module in ("pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib")
    for name in ("load", "loads", "Unpickler", "open")
}
CONNECTS = {
    "urllib.request",
    "http.client",
    "requests",
    "httpx",
    "ftplib",
    "smtplib",
    "socket.create_connection",
    "asyncio.open_connection",
    "aiohttp.ClientSession",
    "aiohttp.request",
    "aiohttp.TCPConnector",
}
OPENS = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "FileResponse", "mkdir"}
OPENS_ITS_OWN = {
    "gateway/tls.py": "the certificate of the settings",
    "gateway/admin/routes.py": "the dashboard's files, by a table",
    "gateway/http/page.py": "the page's files, listed at start",
    "sessions/resumption/checkpoints.py": "files whose names are hashes of our own ids",
    "protocol/document.py": "its own notes, when documents are made",
    "codecs/containers/decode_child.py": "the null device, in a child process",
}
"""Modules on a client's way that open files, and which; none of the names comes from a client."""


def modules(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for folder in folders or (".",):
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> Iterator[str]:
    """Each module that is imported, and each name of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Each call, by what is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def argument(call: ast.Call, name: str) -> object:
    """A constant argument by keyword."""
    for keyword in call.keywords:
        if keyword.arg == name and isinstance(keyword.value, ast.Constant):
            return keyword.value.value
    return None


def test_nothing_is_loaded_that_could_run() -> None:
    """Weights are safetensors, ONNX or GGUF; what torch or numpy read holds numbers alone."""
    found = []
    for where, tree in modules():
        found += [(where, name) for name in imported(tree) if name in RUNS_WHAT_IT_READS]
        for name, call in calls(tree):
            unsafe = (
                name in ("eval", "exec")
                or name in RUNS_WHAT_IT_READS
                or (name.endswith("torch.load") and argument(call, "weights_only") is not True)
                or (name.endswith("np.load") and argument(call, "allow_pickle") is not False)
                or name in ("yaml.load", "yaml.unsafe_load", "yaml.full_load")
            )
            if unsafe:
                found.append((where, name))
    assert found == []


def test_nothing_on_a_clients_way_fetches_an_address() -> None:
    """Addresses of media are refused, so there is none to check: see docs/security.md."""
    found = []
    for where, tree in modules(*HEARS_CLIENTS):
        names = {*imported(tree), *(name for name, _ in calls(tree))}
        found += [(where, name) for name in names if name in CONNECTS]
    # A session host is found by its directory and by settings, never by a client.
    assert [each for each in found if not each[0].startswith("hosts/")] == []


def test_nothing_on_a_clients_way_opens_a_file_by_a_name_from_outside() -> None:
    found = set()
    for where, tree in modules(*HEARS_CLIENTS):
        for name, _ in calls(tree):
            owner, _, method = name.rpartition(".")
            is_builtin = not owner and method == "open"
            is_path = method in OPENS - {"open"} or (owner in ("os", "io") and method == "open")
            if is_builtin or is_path:
                found.add(where)
    assert found == set(OPENS_ITS_OWN)


SECRET_NAMES = ("secret", "token", "digest", "signature", "api_key", "admin_key")


@pytest.mark.parametrize("folder", ["gateway", "sessions"])
def test_secrets_are_never_compared_with_an_equals_sign(folder: str) -> None:
    """``==`` stops at the first byte that differs, and its time tells where that is."""
    found = []
    for where, tree in modules(folder):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Compare):
                continue
            if not any(isinstance(op, ast.Eq | ast.NotEq | ast.In) for op in node.ops):
                continue
            sides = [node.left, *node.comparators]
            names = [ast.unparse(side).rpartition(".")[2].strip("_") for side in sides]
            constant = any(isinstance(side, ast.Constant | ast.Tuple) for side in sides)
            if not constant and any(name in SECRET_NAMES for name in names):
                found.append((where, ast.unparse(node)))
    assert found == []


def test_where_secrets_are_compared_it_takes_always_the_same_time() -> None:
    by_module = {where: {name for name, _ in calls(tree)} for where, tree in modules()}
    compares = [where for where, names in by_module.items() if "hmac.compare_digest" in names]
    assert {
        "gateway/keyring.py",
        "gateway/client_secrets.py",
        "gateway/admin/key.py",
        "gateway/telephony/signature.py",
        "sessions/resumption/lease.py",
    } <= set(compares)
