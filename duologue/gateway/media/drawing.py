"""Images from the engine: several at once, each shown while it is made.

Leaving gives up what has not ended. This module must not know routes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from duologue.core.errors import EngineError
from duologue.engines.media_payloads import DrawImage, ImageData
from duologue.gateway.route_requests import Outputs, RouteRequests


class Drawings:
    """Images that are being made, in the order in which they were asked for."""

    def __init__(self, outputs: Sequence[Outputs]) -> None:
        self._outputs = outputs

    async def images(self) -> list[ImageData]:
        """Wait for all of them.

        Raises:
            EngineError: One of them failed; the others are given up when the drawings are left.
        """
        return [await self._final(each) for each in self._outputs]

    async def views(self) -> AsyncIterator[ImageData]:
        """Yield the views of the first image while it is made, and at last the image.

        Raises:
            EngineError: It failed.
        """
        async for payload in self._outputs[0]:
            if isinstance(payload, ImageData):
                yield payload

    @staticmethod
    async def _final(outputs: Outputs) -> ImageData:
        async for payload in outputs:
            if isinstance(payload, ImageData) and payload.partial < 0:
                return payload
        raise EngineError("the pipeline gave no image")


@asynccontextmanager
async def drawn(
    engine: RouteRequests, pipeline: str, asks: Sequence[DrawImage]
) -> AsyncIterator[Drawings]:
    """Ask for images, all at once, so that they can be made together.

    Raises:
        CapacityError: There is no room for all of them.
        EngineError: They cannot be made.
    """
    async with AsyncExitStack() as leaving:
        outputs = [leaving.enter_context(engine.request(pipeline, ask)) for ask in asks]
        yield Drawings(outputs)
