"""The configuration: what is in force in a session, and how its client is shown it.

This module must not know what any of it is good for.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import UnsetType

from duologue.duplex_plugins.contract import Capabilities, PluginConfig
from duologue.protocol.commands import ResponseParams
from duologue.protocol.response_config import ResponseConfig, response_config
from duologue.protocol.session_config import AnySession, SessionConfig, to_wire
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.dialect_extras import DialectExtras
from duologue.sessions.dialogue.plugin_config import plugin_config, supported_by
from duologue.sessions.settings import SessionSettings


class Configuration:
    """What one session is, as far as its client may say.

    Args:
        model: The name that the client asked for; it is shown it again.
        config: What is in force at the start.
        detectors: Kinds of turn detection that the engine has stages for.
        wall_time: When the session began, in Unix seconds.
    """

    __slots__ = (
        "_capabilities",
        "_expires_wall",
        "_model",
        "_session_id",
        "_supported",
        "current",
    )

    def __init__(
        self,
        session_id: str,
        model: str,
        config: SessionConfig,
        settings: SessionSettings,
        capabilities: Capabilities,
        detectors: frozenset[str],
        wall_time: float,
    ) -> None:
        self.current = config
        self._session_id = session_id
        self._model = model
        self._capabilities = capabilities
        self._expires_wall = int(wall_time + settings.max_duration_s)
        self._supported = supported_by(
            capabilities, detectors, recogniser=settings.listening.asr is not None
        )

    def change(
        self, patch: SessionPatch, extras: DialectExtras, *, spoken: bool = False
    ) -> SessionConfig:
        """Put a change in force, all of it.

        Args:
            extras: Of which dialect the change is.
            spoken: The model has said something.

        Raises:
            ClientError: It is not allowed; nothing changed.
        """
        supported = self._supported
        if spoken and self._capabilities.persona.stays:
            supported = replace(supported, persona_stays=True)
        self.current = extras.merge(self.current, patch, supported)
        return self.current

    def of_response(self, params: ResponseParams | UnsetType) -> ResponseConfig:
        """Return what a response has whose client wants some of it otherwise.

        Raises:
            ClientError: It wants what it cannot have.
        """
        return response_config(self.current, params, self._supported)

    def of_plugin(self) -> PluginConfig:
        """Return what the plugin is told."""
        return plugin_config(self.current, self._capabilities)

    def shown(self, extras: DialectExtras) -> AnySession:
        """Return the session as its client is shown it."""
        realtime = to_wire(self.current, self._session_id, self._model, self._expires_wall)
        return extras.shown(realtime, self.current, self._supported)
