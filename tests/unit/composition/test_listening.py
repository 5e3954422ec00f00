from __future__ import annotations

import socket

import pytest
from aiohttp import web

from duologue.composition.listening import listen, url_of
from duologue.core.errors import ConfigError
from duologue.gateway.settings import GatewaySettings
from tests.fakes.edged_gateway import free_port


async def started(port: int, *, shared: bool) -> web.AppRunner:
    runner = web.AppRunner(web.Application())
    await runner.setup()
    try:
        await listen(runner, GatewaySettings(port=port), None, shared=shared)
    except ConfigError:
        await runner.cleanup()
        raise
    return runner


async def test_several_gateways_may_share_a_port_and_others_may_not() -> None:
    with free_port() as port:
        first = await started(port, shared=True)
        second = await started(port, shared=True)
        assert url_of("127.0.0.1", second, None) == f"http://localhost:{port}"
        with pytest.raises(ConfigError, match="another program"):
            await started(port, shared=False)
        with socket.create_connection(("127.0.0.1", port)):
            pass
        for runner in (first, second):
            await runner.cleanup()
