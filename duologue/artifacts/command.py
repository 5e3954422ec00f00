"""``duologue models list | pull | verify | path``: the weights of this machine.

Models that a person fetches from their publisher are listed and checked as well; never fetched.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

from duologue.artifacts.errors import ArtifactError, ArtifactUnavailable
from duologue.artifacts.manifest import Artifact, Kind
from duologue.artifacts.progress import shown_on
from duologue.artifacts.published import Published, check, find, load_published, state
from duologue.artifacts.settings import ArtifactSettings, SourceKind
from duologue.artifacts.store import State, Status, Store

DEFAULT_PROFILE: Final = "default"
PIPE_WIDTH: Final = 200
EXIT_FAILED: Final = 1
EXIT_STOPPED: Final = 130

STATE_STYLES: Final = {State.READY: "green", State.MISSING: "", State.INCOMPLETE: "red"}


def register(subparsers: Any) -> Any:
    """Add ``models`` to the commands.

    Args:
        subparsers: What ``ArgumentParser.add_subparsers`` returned; its class is private.

    Returns:
        The same of its actions, for those that need more than this package.
    """
    models = subparsers.add_parser(
        "models", help="list, fetch and check the weights", description=__doc__
    )
    actions = models.add_subparsers(dest="models_command", required=True, metavar="ACTION")
    actions.add_parser("list", help="what there is, and what of it is here")
    pull = actions.add_parser("pull", help="fetch weights; goes on where an earlier try stopped")
    _add_choice(pull)
    pull.add_argument(
        "--sources",
        type=_sources,
        metavar="KIND,...",
        help=f"sources to ask, in this order, instead of those of the settings: "
        f"{', '.join(SourceKind)}",
    )
    pull.add_argument(
        "--folder",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="take FOLDER/FILE or FOLDER/ID/FILE where they exist, before any other source",
    )
    verify = actions.add_parser("verify", help="hash the weights that are here")
    _add_choice(verify)
    path = actions.add_parser("path", help="print where an artifact lies")
    path.add_argument("id", metavar="ID")
    return actions


def run(args: argparse.Namespace, settings: ArtifactSettings | None = None) -> int:
    """Carry out ``models``; returns the exit code. Errors go to standard error."""
    settings = _with_options(settings or ArtifactSettings(), args)
    store = Store(settings)
    try:
        match args.models_command:
            case "list":
                return _list(store, settings)
            case "pull":
                return _pull(store, args)
            case "verify":
                return _verify(store, args, settings)
            case _:
                print(store.path(args.id))
                return 0
    except ArtifactError as exc:
        print(exc.message, file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return EXIT_STOPPED


def _list(store: Store, settings: ArtifactSettings) -> int:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("id", "role", "size", "licence", "source", "state"):
        table.add_column(header, justify="right" if header == "size" else "left")
    for status in store.status():
        artifact = status.artifact
        table.add_row(
            artifact.id,
            artifact.role,
            f"{artifact.size_bytes / 1e6:,.1f} MB",
            _licence(artifact),
            _source(artifact),
            _state(status),
            style=STATE_STYLES[status.state],
        )
    for model in load_published():
        size = "?" if model.size_bytes is None else f"{model.size_bytes / 1e6:,.1f} MB"
        source = f"{model.upstream}@{model.revision[:7]}"
        found = f"yours to fetch; {state(model, settings.folders)}"
        table.add_row(model.id, model.role, size, model.licence, source, found)
    # A pipe has no width to fit; a table cut to 80 columns is no use to the next program.
    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)
    print(f"kept in {store.cache_dir} (DUOLOGUE_CACHE moves it)")
    for name, ids in store.manifest.profiles.items():
        print(f"profile {name}: {', '.join(ids)}")
    return 0


def _pull(store: Store, args: argparse.Namespace) -> int:
    ids = _chosen(store, args)
    _refuse_published(ids)
    with shown_on() as progress:
        store.pull(ids, progress)
    total_bytes = sum(store.manifest.get(each).size_bytes for each in ids)
    print(f"{len(ids)} artifacts ready, {total_bytes / 1e6:,.0f} MB, in {store.cache_dir}")
    return 0


def _verify(store: Store, args: argparse.Namespace, settings: ArtifactSettings) -> int:
    ids = _chosen(store, args)
    published = [model for each in ids if (model := find(each)) is not None]
    failed = [_verify_published(model, settings) for model in published]
    with shown_on() as progress:
        verdicts = store.verify([each for each in ids if find(each) is None], progress)
    for verdict in verdicts:
        if not verdict.problems:
            print(f"{verdict.artifact.id}: right")
        for problem in verdict.problems:
            print(problem.message)
    return EXIT_FAILED if any(failed) or any(verdict.problems for verdict in verdicts) else 0


def _verify_published(model: Published, settings: ArtifactSettings) -> bool:
    """Tell of every file; returns whether one of them cannot be used."""
    with shown_on() as progress:
        checked = list(check(model, settings.folders, progress))
    for each in checked:
        print(f"{model.id} {each.file.name}: {each.text}")
    print(
        f"{model.id}: revision {model.revision}; its hashes are those that others have published of"
        " it, not measured by us"
    )
    return any(each.failed for each in checked)


def _refuse_published(ids: Sequence[str]) -> None:
    for each in ids:
        if (model := find(each)) is not None:
            raise ArtifactUnavailable(model.how_to_get())


def _add_choice(parser: argparse.ArgumentParser) -> None:
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("ids", nargs="*", default=[], metavar="ID", help="artifacts by id")
    choice.add_argument("--all", action="store_true", help="all artifacts")
    choice.add_argument(
        "--profile", metavar="NAME", help=f"a set of them; {DEFAULT_PROFILE!r} if nothing is said"
    )


def _chosen(store: Store, args: argparse.Namespace) -> Sequence[str]:
    if args.ids:
        return tuple(args.ids)
    if args.all:
        return store.manifest.ids
    return store.manifest.profile(args.profile or DEFAULT_PROFILE)


def _with_options(settings: ArtifactSettings, args: argparse.Namespace) -> ArtifactSettings:
    if args.models_command != "pull":
        return settings
    sources: tuple[SourceKind, ...] = args.sources or settings.sources
    folders = (*(folder.expanduser() for folder in args.folder), *settings.folders)
    if args.folder:
        sources = (SourceKind.FOLDER, *(kind for kind in sources if kind is not SourceKind.FOLDER))
    return settings.model_copy(update={"sources": sources, "folders": folders})


def _sources(text: str) -> tuple[SourceKind, ...]:
    try:
        return tuple(dict.fromkeys(SourceKind(name.strip()) for name in text.split(",")))
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"{exc}; there are: {', '.join(SourceKind)}") from exc


def _licence(artifact: Artifact) -> str:
    licence = artifact.licence
    if licence.code is None or licence.code == licence.model:
        return licence.model
    return f"{licence.code} / {licence.model}"


def _source(artifact: Artifact) -> str:
    revision = artifact.upstream.revision
    short = revision[:7] if artifact.upstream.on_hub else revision
    return f"{artifact.upstream.name}@{short}"


def _state(status: Status) -> str:
    if status.artifact.kind is Kind.LIBRARY:
        return "installed" if status.state is State.READY else "not installed"
    return str(status.state)
