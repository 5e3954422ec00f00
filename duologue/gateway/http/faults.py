"""The log of aiohttp's server, without the faults of peers.

This module must not know what is served.
"""

from __future__ import annotations

import logging
import warnings

from aiohttp import BadContentDispositionHeader, BadContentDispositionParam, web
from aiohttp.http import HttpProcessingError


class OurFaults(logging.Filter):
    """Drops records of requests that were no HTTP: who listens on a port hears all kinds of things.

    Such a record may quote the request, with the key in it. A body that cannot be unpacked is
    met again after its answer, where aiohttp reads what is left of it.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record is about something that we did."""
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError | web.RequestPayloadError)


def server_logger() -> logging.Logger:
    """Return the logger for aiohttp's server, and silence its warnings about peers.

    Python would keep each such text for ever, to say it once only.
    """
    for kind in (BadContentDispositionHeader, BadContentDispositionParam):
        warnings.filterwarnings("ignore", category=kind)
    logger = logging.getLogger("duologue.gateway.http")
    if not any(isinstance(each, OurFaults) for each in logger.filters):
        logger.addFilter(OurFaults())
    return logger
