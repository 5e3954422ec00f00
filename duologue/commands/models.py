"""``duologue models``: the weights, with the configured cache and sources."""

from __future__ import annotations

import argparse
import os
from typing import Any

from duologue.artifacts import command
from duologue.commands import model_check
from duologue.config import load
from duologue.settings import Settings


def register(subparsers: Any) -> None:
    """Add ``models`` to the commands."""
    model_check.register(command.register(subparsers))


def run(args: argparse.Namespace) -> int:
    """Carry it out with the settings of the environment.

    Raises:
        ConfigError: The environment has a setting that cannot be used.
    """
    settings = load(Settings, environ=os.environ).settings.artifacts
    if args.models_command == model_check.ACTION:
        return model_check.run(args, settings)
    return command.run(args, settings)
