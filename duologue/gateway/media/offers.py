"""Which pipelines clients may ask for images, videos and sounds, and by which name.

Such a pipeline is a model of its own name: its YAML says what it offers. This module must not know
routes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from duologue.core.errors import ProtocolError
from duologue.engines.media_offer import MediaOffer, MediaTask
from duologue.protocol.errors import ErrorCode, refused, shown

_CANNOT: Mapping[MediaTask, str] = {
    "images": "draw",
    "image_edits": "edit images",
    "videos": "make videos",
    "video_edits": "work on videos",
    "sounds": "make sounds",
}


@dataclass(frozen=True, slots=True)
class MediaModel:
    """A pipeline that clients may ask for; its name is the model's."""

    name: str
    offer: MediaOffer


class MediaModels:
    """All of them.

    Args:
        offers: By the name of the pipeline; the first that can do a task is its default.
        default_for: Patterns of names that mean the default, as ``gpt-image-*``.
    """

    def __init__(self, offers: Mapping[str, MediaOffer], default_for: Sequence[str] = ()) -> None:
        self.models = tuple(MediaModel(name, offer) for name, offer in offers.items())
        self._default_for = tuple(default_for)

    def find(self, name: str | None, task: MediaTask) -> MediaModel:
        """Return the model that a client means for a task.

        Raises:
            ProtocolError: There is none, or it cannot do this.
        """
        able = [model for model in self.models if model.offer.offers(task)]
        if not able:
            raise refused(
                f"no model here can {_CANNOT[task]}: a pipeline that does is named in "
                "engine.pipelines or engine.pipeline_files",
                "model",
                ErrorCode.UNSUPPORTED,
            )
        if name is None or any(fnmatchcase(name, pattern) for pattern in self._default_for):
            return able[0]
        found = next((model for model in self.models if model.name == name), None)
        names = ", ".join(model.name for model in able)
        if found is None:
            raise ProtocolError(
                f"there is no model {shown(name)} here that can {_CANNOT[task]}; there are: "
                f"{names}",
                code=ErrorCode.MODEL_NOT_FOUND,
                param="model",
            )
        if found not in able:
            raise refused(
                f"the model {name} cannot {_CANNOT[task]}; these can: {names}",
                "model",
                ErrorCode.UNSUPPORTED,
            )
        return found
