"""What routes that work with models are given. This module must not know any route."""

from __future__ import annotations

from dataclasses import dataclass

from duologue.core.clock import Clock
from duologue.core.ids import IdMaker
from duologue.gateway.catalogue import Catalogue
from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.route_requests import RouteRequests
from duologue.telemetry import Metrics


@dataclass(frozen=True, slots=True)
class HttpServices:
    """The parts, made once in the composition root."""

    engine: RouteRequests
    catalogue: Catalogue
    settings: HttpSettings
    clock: Clock
    new_id: IdMaker
    metrics: Metrics
