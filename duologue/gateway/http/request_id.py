"""A number on every answer, which a caller may quote and SDKs put into their logs and errors.

This module must not know what is asked.
"""

from __future__ import annotations

from aiohttp import web

from duologue.core.ids import IdMaker

REQUEST_ID_HEADER = "x-request-id"


class RequestIds:
    """Numbers the answers of an application."""

    def __init__(self, new_id: IdMaker) -> None:
        self._new_id = new_id

    def install(self, app: web.Application) -> None:
        """Take part in every answer of an application, streamed ones too."""
        app.on_response_prepare.append(self._mark)

    async def _mark(self, _request: web.Request, response: web.StreamResponse) -> None:
        response.headers[REQUEST_ID_HEADER] = self._new_id("req")
