"""The plugin host: holds one plugin with its state, and makes requests of what it asks the engine.

What a plugin says is for the session to act on. This module must not know responses,
items or events.
"""

from __future__ import annotations

from duologue.core.errors import PluginError
from duologue.core.fence import SESSION_LANE, Lane
from duologue.duplex_plugins.contract import (
    AdoptRequest,
    AppendToRequest,
    DuplexPlugin,
    FinishRequest,
    PluginConfig,
    StartRequest,
    StopRequest,
)
from duologue.sessions.requests import Asker, Requests, RunningRequest

RequestEffect = StartRequest | AppendToRequest | FinishRequest | StopRequest | AdoptRequest
"""The effects that concern the engine; the others concern the session."""


class PluginHost:
    """One plugin and its state in one session; whoever has an input for it calls its ``step``."""

    __slots__ = ("_requests", "capabilities", "plugin", "state")

    def __init__(self, plugin: DuplexPlugin, config: PluginConfig, requests: Requests) -> None:
        self.capabilities = plugin.capabilities()
        self.plugin = plugin
        self._requests = requests
        self.state = plugin.open(config)

    def perform(self, effect: RequestEffect) -> None:
        """Do what the plugin wants of the engine.

        Raises:
            PluginError: It used a request that it has not started, or a response that is over.
        """
        match effect:
            case StartRequest():
                self._requests.open(
                    Asker.PLUGIN,
                    effect.key,
                    effect.pipeline,
                    lane=self._lane(effect.response_id),
                    first=effect.first,
                    more_input=effect.more_input,
                    credit=effect.credit,
                )
            case AppendToRequest(key=key, payload=payload):
                self._requests.append(self._request(key), payload)
            case FinishRequest(key=key):
                self._requests.finish(self._request(key))
            case StopRequest(key=key):
                self._requests.cancel(Asker.PLUGIN, key)
            case AdoptRequest(key=key, response_id=response_id):
                self._requests.adopt(self._request(key), self._lane(response_id))

    def _lane(self, response_id: str | None) -> Lane:
        if response_id is None:
            return SESSION_LANE
        lane = Lane(response_id)
        if not self._requests.epochs.is_open(lane):
            raise PluginError(f"the plugin works for response '{response_id}', which is over")
        return lane

    def _request(self, key: str) -> RunningRequest:
        request = self._requests.find(Asker.PLUGIN, key)
        if request is None:
            raise PluginError(f"the plugin uses request '{key}', which it has not started")
        return request
