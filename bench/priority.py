"""Runs a measured process ahead of the machine's other work, on a box that is not ours alone."""

import argparse
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

AHEAD = -15


def add_urgent_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--urgent",
        action="store_true",
        help="run all that is measured ahead of the machine's other work (root only)",
    )


def check_urgent(wanted: bool) -> bool:
    """`wanted`, once it is certain that it can be had."""
    if wanted and os.geteuid() != 0:
        raise SystemExit("--urgent raises priorities, which only root may do: leave it out")
    return wanted


def go_first() -> None:
    """Put the calling process into a session of its own and raise both above others.

    The kernel shares the cores first between sessions (autogroups) and only then by nice value
    within one, so a raised nice value alone changes little.
    """
    with suppress(PermissionError):  # it leads a session already
        os.setsid()
    os.setpriority(os.PRIO_PROCESS, 0, AHEAD)
    autogroup = Path("/proc/self/autogroup")
    if autogroup.exists():
        autogroup.write_text(str(AHEAD))


def bring_along(pids: Iterable[int]) -> None:
    """Raise the sessions of processes that `go_first` does not reach.

    A nice value is inherited; that of a session is not, and our server's workers lead sessions of
    their own. Without this they would share the cores with all others, one part each. All are
    raised by the same amount: a worker that has yielded to the others still does.
    """
    for pid in pids:
        with suppress(FileNotFoundError):  # it has ended, or there are no autogroups
            autogroup = Path(f"/proc/{pid}/autogroup")
            autogroup.write_text(str(raised(autogroup.read_text())))


def raised(session: str) -> int:
    """Return the value of a session that is put ahead, from what the system says of it.

    Args:
        session: As ``/autogroup-33 nice 10``. One that is ahead already stays as it is.
    """
    own = int(session.split()[-1])
    return own if own < 0 else AHEAD + own
