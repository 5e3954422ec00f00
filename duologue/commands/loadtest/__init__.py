"""``duologue loadtest``: many calls at once against a running server, measured."""

from duologue.commands.loadtest.command import register as register
from duologue.commands.loadtest.command import run as run
