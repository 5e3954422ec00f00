"""A session host and its gateways in the test's own process, over a real socket between them."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from duologue.composition.edge import EdgeApp, running_edge
from duologue.composition.host import HostApp, running_host
from duologue.composition.orders import EdgeOrder, HostOrder
from duologue.hosts.messages import Status
from duologue.settings import Settings

SIGNING_KEY = "signing-key-of-the-tests"


@dataclass
class EdgedGateway:
    host: HostApp
    edges: list[EdgeApp]

    @property
    def urls(self) -> list[str]:
        return [edge.url for edge in self.edges]


@contextmanager
def free_port() -> Iterator[int]:
    """A port that several may share, and nobody else takes meanwhile."""
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        kept.bind(("127.0.0.1", 0))
        yield kept.getsockname()[1]


@asynccontextmanager
async def edged_gateway(settings: Settings, edges: int = 1) -> AsyncIterator[EdgedGateway]:
    """Each gateway has a port of its own, so that a test can choose."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="duologue-")))
        path = str(folder / "host.sock")
        host = await stack.enter_async_context(
            running_host(settings, HostOrder(name="host", socket=path))
        )
        joined = [
            await stack.enter_async_context(
                running_edge(
                    settings,
                    EdgeOrder(
                        name=f"edge-{index}",
                        index=index,
                        socket=path,
                        port=stack.enter_context(free_port()),
                        signing_key=SIGNING_KEY,
                    ),
                )
            )
            for index in range(edges)
        ]
        for edge in joined:
            await edge.host.wait_status(_has_models)
        yield EdgedGateway(host, joined)


def _has_models(status: Status) -> bool:
    return status.loaded
