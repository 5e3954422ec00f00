"""The command router: gives each command of a client to the part of the session that it concerns.

Audio does not come this way. This module must not know what the parts do about it.
"""

from __future__ import annotations

from duologue.core.errors import ProtocolError
from duologue.duplex_plugins.contract import ConfigChanged
from duologue.protocol.commands import (
    CancelResponse,
    ClearAudio,
    ClearOutputAudio,
    Command,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    RetrieveItem,
    TruncateItem,
    UpdateSession,
)
from duologue.protocol.duplex.commands import CloseSession
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import SessionUpdated
from duologue.protocol.response_config import response_config
from duologue.protocol.response_resource import CLIENT_CANCELLED
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.configuration import Configuration
from duologue.sessions.conversation import Conversation
from duologue.sessions.dialect_extras import DialectExtras
from duologue.sessions.dialogue.dialogue import Dialogue
from duologue.sessions.extensions import CLOSED, Extensions
from duologue.sessions.hearing.person import Person
from duologue.sessions.history.history import History
from duologue.sessions.lifetime import Lifetime
from duologue.sessions.resumption.resume_wire import too_old
from duologue.sessions.speaking.speaking import Speaking


class CommandRouter:
    """The commands of one session.

    Args:
        extensions: What is said to a client that asked for more than the Realtime API.
        edge_plays: The edge paces the sound, and can drop what it has not played.
    """

    __slots__ = (
        "_configuration",
        "_conversation",
        "_dialogue",
        "_edge_plays",
        "_extensions",
        "_extras",
        "_history",
        "_lifetime",
        "_person",
        "_speaking",
    )

    def __init__(
        self,
        configuration: Configuration,
        extras: DialectExtras,
        person: Person,
        dialogue: Dialogue,
        speaking: Speaking,
        conversation: Conversation,
        history: History,
        lifetime: Lifetime,
        extensions: Extensions | None,
        *,
        edge_plays: bool,
    ) -> None:
        self._configuration = configuration
        self._extras = extras
        self._person = person
        self._dialogue = dialogue
        self._speaking = speaking
        self._conversation = conversation
        self._history = history
        self._lifetime = lifetime
        self._extensions = extensions
        self._edge_plays = edge_plays

    def route(self, command: Command, now: float) -> str | None:
        """Have a command carried out.

        Returns:
            Why the session is to end, where the client has said so.

        Raises:
            ClientError: It is refused, and nothing changed.
        """
        self._extras.heard_from(now)
        match command:
            case UpdateSession(session=patch):
                self._update(patch, now)
            case CommitAudio():
                self._person.commit(now)
            case ClearAudio():
                self._person.clear(now)
            case CreateItem():
                self._person.create_item(command, now)
            case RetrieveItem():
                self._speaking.emit(self._conversation.retrieve(command))
            case TruncateItem():
                self._speaking.emit(self._conversation.truncate(command, now))
                self._dialogue.heard_changed(self._history.get(command.item_id), now)
            case DeleteItem():
                self._speaking.emit(self._conversation.delete(command))
            case CreateResponse(response=params):
                if self._lifetime.leaving:
                    raise too_old()
                self._dialogue.request(self._configuration.of_response(params), now)
            case CancelResponse(response_id=response_id):
                self._dialogue.cancel(response_id, now)
            case CloseSession(reason=reason) if self._extensions is not None:
                self._extensions.close_reason = reason
                return CLOSED
            case ClearOutputAudio():
                self._clear_output(now)
            case _:
                self._extras.command(command, self._configuration.current, now)
        return None

    def _update(self, patch: SessionPatch, now: float) -> None:
        config = self._configuration.change(patch, self._extras, spoken=self._speaking.has_spoken)
        self._person.configure(config, now)
        self._dialogue.own_config = response_config(config)
        self._dialogue.release(wanted=config.answers_turns)
        if config.kind == "transcription" and not self._dialogue.muted:
            self._dialogue.mute(now)
        self._speaking.emit(SessionUpdated(session=self._configuration.shown(self._extras)))
        self._dialogue.tell(ConfigChanged(self._configuration.of_plugin()), now)

    def _clear_output(self, now: float) -> None:
        if self._extensions is not None:
            self._extras.clear_output(now)
        elif self._edge_plays:
            self._dialogue.interrupt(now, CLIENT_CANCELLED)
        else:
            raise ProtocolError(
                "output_audio_buffer.clear is for transports where the server plays the audio; "
                "here, stop playing and send conversation.item.truncate",
                code=ErrorCode.UNSUPPORTED,
            )
