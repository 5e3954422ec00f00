"""Work that a client may ask for twice and that is done once: ``Idempotency-Key``.

This module must not know what is made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

from duologue.gateway.auth import caller_id
from duologue.gateway.ws.handshake import offered_protocols
from duologue.hosts.answers import AnswersPort
from duologue.hosts.idempotency import checked_key


class AnsweredOnce:
    """Answers by the keys that they were asked for with.

    Args:
        answers: Where they are kept.
    """

    def __init__(self, answers: AnswersPort) -> None:
        self._answers = answers

    async def answer(
        self, request: web.Request, what: object, make: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        """Make an answer, or return the one that this key was given before.

        Args:
            what: All that makes two requests the same.
            make: Called where the key is new, or there is none; if it raises, nothing is kept.

        Raises:
            ProtocolError: The key is none, belongs to another request or is being worked on.
        """
        given = request.headers.get("Idempotency-Key")
        if given is None:
            return await make()
        headers = request.headers
        owner = caller_id(headers, offered_protocols(headers), request.query_string)
        key = f"{owner} {request.path} {checked_key(given)}"
        fingerprint = hashlib.sha256(msgspec.msgpack.encode(what)).digest()
        known = await self._answers.begin(key, fingerprint)
        if known is not None:
            return known
        try:
            answer = await make()
        except BaseException:
            self._answers.failed(key)
            raise
        await self._answers.done(key, answer)
        return answer
