"""Calls over TLS: must-have 30. OpenAI's SDK for Node knows no other way than wss."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from openai import AsyncOpenAI

from duologue.app import App, running_app
from duologue.artifacts.settings import ArtifactSettings
from duologue.gateway.settings import TlsSettings
from tests.fakes.small_gateway import API_KEY, LINE, small_settings
from tests.patience import PATIENCE_S

NODE_FOLDER = Path(__file__).parent / "node"


@asynccontextmanager
async def secure_gateway(cache: Path) -> AsyncIterator[tuple[App, Path]]:
    """A gateway with a certificate for development, and the file that holds it."""
    settings = small_settings(api_keys=(API_KEY,))
    gateway = settings.gateway.model_copy(update={"tls": TlsSettings(dev=True)})
    artifacts = ArtifactSettings(cache_dir=cache)
    changed = settings.model_copy(update={"gateway": gateway, "artifacts": artifacts})
    async with running_app(changed) as app:
        assert app.tls is not None
        yield app, app.tls.certificate.path


@pytest.mark.node
@pytest.mark.parametrize(("kind", "protocol"), [("server", ""), ("browser", "realtime")])
async def test_must_have_30_the_sdk_for_node_holds_a_call_over_wss(
    tmp_path: Path, kind: str, protocol: str
) -> None:
    """As a server it shows its key in a header; as a browser does, in a subprotocol."""
    async with secure_gateway(tmp_path) as (app, certificate), asyncio.timeout(PATIENCE_S):
        node = await asyncio.create_subprocess_exec(
            "node",
            # Before version 22 Node hides its own.
            "--experimental-websocket",
            str(NODE_FOLDER / "openai_caller.mjs"),
            kind,
            f"{app.url}/v1",
            API_KEY,
            "Hello.",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "NODE_EXTRA_CA_CERTS": str(certificate)},
        )
        out, err = await node.communicate()
        assert (node.returncode, err.decode()) == (0, ""), "are its packages there? run: make node"
        seen = json.loads(out)
        assert seen["url"].startswith("wss://")
        assert seen["errors"] == []
        assert seen["instructions"] == "Be kind."
        assert seen["types"][0] == "session.created"
        assert (seen["status"], seen["transcript"], seen["code"]) == ("completed", LINE, 1000)
        assert seen["protocol"] == protocol, "of those that carry a key none comes back"
        assert seen["audioBytes"] > 24_000
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0


async def test_a_client_that_trusts_the_certificate_calls_over_the_same_port(
    tmp_path: Path,
) -> None:
    async with secure_gateway(tmp_path) as (app, certificate):
        trusting = ssl.create_default_context(cafile=certificate)
        base = app.url.replace("https", "wss", 1)
        async with (
            AsyncOpenAI(api_key=API_KEY, websocket_base_url=f"{base}/v1") as client,
            client.realtime.connect(
                model="duologue", websocket_connection_options={"ssl": trusting}
            ) as connection,
            asyncio.timeout(PATIENCE_S),
        ):
            assert (await connection.recv()).type == "session.created"
            await connection.response.create()
            size = 0
            async for event in connection:
                assert event.type != "error", event
                if event.type == "response.output_audio.delta":
                    size += len(event.delta)
                elif event.type == "response.done":
                    break
            assert size > 24_000


async def test_a_client_that_does_not_trust_it_or_speaks_plainly_gets_nothing(
    tmp_path: Path,
) -> None:
    async with secure_gateway(tmp_path) as (app, _):
        port = int(app.url.rpartition(":")[2])
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection(
                "127.0.0.1", port, ssl=ssl.create_default_context(), server_hostname="localhost"
            )
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"HTTP" not in await reader.read()
        writer.close()
        assert len(app.sessions) == 0
