"""LiteLLM as a proxy, unmodified, between clients and the gateway."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import yaml

from tests.conformance.foreign_client import ENVIRONMENTS
from tests.conformance.talking_gateway import API_KEY, TalkingGateway
from tests.patience import PATIENCE_S

KEY = "sk-of-the-proxy"
"""What its clients show; the gateway's own key stays with it."""

MODELS = ("duologue", "gpt-realtime", "gpt-4o-mini-tts", "gpt-4o-transcribe", "whisper-1")

_COMPLAINT = re.compile(r"WARNING|ERROR|CRITICAL|Traceback")


class ProxyFailed(AssertionError):
    """The proxy did not start."""


@dataclass
class Proxy:
    """A running proxy."""

    http_url: str
    lines: list[str] = field(default_factory=list)
    """What it wrote so far."""

    @property
    def complaints(self) -> list[str]:
        """Its lines that warn, or worse."""
        return [line for line in self.lines if _COMPLAINT.search(line)]


@asynccontextmanager
async def litellm_proxy(gateway: TalkingGateway, folder: Path) -> AsyncIterator[Proxy]:
    """Run a proxy that knows no models but the gateway's.

    Raises:
        ProxyFailed: It ended, or did not listen in time.
    """
    config = folder / "litellm.yaml"
    config.write_text(yaml.safe_dump(_config(gateway)))
    port = _free_port()
    process = await asyncio.create_subprocess_exec(
        str(ENVIRONMENTS / "litellm" / "bin" / "litellm"),
        *("--config", str(config), "--host", "127.0.0.1", "--port", str(port)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=_environment(),
    )
    proxy = Proxy(f"http://127.0.0.1:{port}/v1")
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_keep_lines(process, proxy), name="proxy-lines")
            await _until_it_listens(process, proxy)
            yield proxy
            process.terminate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _config(gateway: TalkingGateway) -> dict[str, object]:
    def model(name: str) -> dict[str, object]:
        served = {"model": f"openai/{name}", "api_base": gateway.http_url, "api_key": API_KEY}
        return {"model_name": name, "litellm_params": served}

    return {
        "model_list": [model(name) for name in MODELS],
        "litellm_settings": {"num_retries": 0},
        "general_settings": {"master_key": KEY, "trusted_proxy_ranges": []},
    }


def _environment() -> dict[str, str]:
    # Else it asks the internet for prices, and gives up after half a minute.
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_COLOR": "1"}
    environment.pop("PYTHONPATH", None)
    # Where this is set, every start compiles its thousands of modules anew.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def _free_port() -> int:
    """Return a port that nobody has; the proxy cannot be told to choose one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _keep_lines(process: asyncio.subprocess.Process, proxy: Proxy) -> None:
    assert process.stdout is not None
    async for line in process.stdout:
        proxy.lines.append(line.decode(errors="replace").rstrip())


async def _until_it_listens(process: asyncio.subprocess.Process, proxy: Proxy) -> None:
    address = f"{proxy.http_url.removesuffix('/v1')}/health/liveliness"
    try:
        # Its first start compiles all its modules.
        async with asyncio.timeout(3 * PATIENCE_S), aiohttp.ClientSession() as http:
            while process.returncode is None:
                try:
                    async with http.get(address) as answer:
                        if answer.status == 200:
                            return
                except aiohttp.ClientConnectionError:
                    await asyncio.wait((asyncio.ensure_future(process.wait()),), timeout=0.2)
    except TimeoutError:
        pass
    raise ProxyFailed("\n".join(proxy.lines[-40:]))
