"""What the two ends of a link may ask each other, and the answers. Each kind of question has one.

This module must not know how messages travel.
"""

from __future__ import annotations

from typing import TypeAlias

from duologue.hosts.answer_questions import AnswerQuestion, AnswerReply
from duologue.hosts.job_questions import JobQuestion, JobReply
from duologue.hosts.lifecycle_questions import LifecycleQuestion, LifecycleReply
from duologue.hosts.link_struct import LinkStruct, Packed
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.owners import Owner
from duologue.sessions.watching.look import SessionLook
from duologue.telemetry.gathering import ProcessFigures


class AskPreview(LinkStruct, frozen=True):
    """What would a session be like? Answered by ``Previewed``."""

    model: str | None
    patch: SessionPatch


class AskLook(LinkStruct, frozen=True):
    """What goes on? Answered by ``Looked``."""


class AskRequest(LinkStruct, frozen=True):
    """May the owner of a key make a request? Answered by ``Waits``."""

    owner_name: str


class AskHangUp(LinkStruct, frozen=True):
    """End a call that another gateway holds. Answered by ``Done``."""

    call_id: str
    owner: Owner


class AskFigures(LinkStruct, frozen=True):
    """What are the figures of your process? Answered by ``Figures``."""


class AskAllFigures(LinkStruct, frozen=True):
    """What are the figures of the host and all its gateways? Answered by ``Figures``."""


Question: TypeAlias = (
    AskPreview
    | AskLook
    | AskRequest
    | AskHangUp
    | AskFigures
    | AskAllFigures
    | JobQuestion
    | AnswerQuestion
    | LifecycleQuestion
)


class Previewed(LinkStruct, frozen=True):
    """The session as an event that shows it."""

    event: Packed


class Looked(LinkStruct, frozen=True):
    """All open sessions."""

    sessions: list[SessionLook]


class Waits(LinkStruct, frozen=True):
    """0, or in how many seconds it may."""

    wait_s: float


class Done(LinkStruct, frozen=True):
    """It was done."""


class Figures(LinkStruct, frozen=True):
    """Those of one process, or several."""

    processes: list[ProcessFigures]


Reply: TypeAlias = (
    Previewed | Looked | Waits | Done | Figures | JobReply | AnswerReply | LifecycleReply
)
