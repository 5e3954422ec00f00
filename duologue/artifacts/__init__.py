"""Where weights come from: what there is, where it lies here, and how it gets here.

Nothing is fetched by an import, by ``Store.path`` or while serving: only by
``duologue models pull``.
"""

from duologue.artifacts.errors import ArtifactError, ArtifactMissing, WrongHash
from duologue.artifacts.manifest import Artifact, Manifest, load_manifest
from duologue.artifacts.settings import ArtifactSettings, SourceKind
from duologue.artifacts.store import State, Status, Store, Verdict

__all__ = [
    "Artifact",
    "ArtifactError",
    "ArtifactMissing",
    "ArtifactSettings",
    "Manifest",
    "SourceKind",
    "State",
    "Status",
    "Store",
    "Verdict",
    "WrongHash",
    "load_manifest",
]
