"""``duologue models``: the weights, with the configured cache and sources."""

from __future__ import annotations

import argparse
import os
from typing import Any

from duologue.artifacts import command
from duologue.config import load
from duologue.settings import Settings


def register(subparsers: Any) -> None:
    """Add ``models`` to the commands."""
    command.register(subparsers)


def run(args: argparse.Namespace) -> int:
    """Carry it out with the settings of the environment.

    Raises:
        ConfigError: The environment has a setting that cannot be used.
    """
    return command.run(args, load(Settings, environ=os.environ).settings.artifacts)
