"""``duologue config``: the settings of the server."""

from __future__ import annotations

import argparse
import os
from typing import Any

from duologue.config import command
from duologue.settings import Settings


def register(subparsers: Any) -> None:
    """Add ``config`` to the commands."""
    command.register(subparsers, Settings)


def run(args: argparse.Namespace) -> int:
    """Carry it out.

    Raises:
        ConfigError: The settings cannot be loaded.
    """
    return command.run(args, Settings, os.environ)
