"""Writes the licences and attributions that must stand beside the weights."""

from __future__ import annotations

from importlib import resources

from duologue.artifacts.manifest import Artifact


def notice_text(artifact: Artifact) -> str:
    """The notice of one artifact: what it is, from whom, and each licence in full."""
    lines = [
        artifact.description,
        f"Source: {artifact.upstream.name}, revision {artifact.upstream.revision}",
        "The files are those of the source, byte for byte. Their sha256:",
        *(f"  {file.sha256}  {file.name}" for file in artifact.files),
        "",
    ]
    for attribution in artifact.attributions:
        lines += [f"{attribution.work} ({attribution.licence})", f"  {attribution.copyright}", ""]
    for licence in dict.fromkeys(attribution.licence for attribution in artifact.attributions):
        lines += [f"--- {licence} ---", "", licence_text(licence).strip("\n"), ""]
    return "\n".join(lines)


def licence_text(name: str) -> str:
    """The full text of a licence by its SPDX name.

    Raises:
        FileNotFoundError: We ship no such text; a new licence in the manifest needs one.
    """
    path = resources.files("duologue.artifacts").joinpath("licences", f"{name}.txt")
    return path.read_text("utf-8")
