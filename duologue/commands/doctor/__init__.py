"""``duologue doctor``: what is missing for a call on this machine, and how to get it."""

from duologue.commands.doctor.command import register as register
from duologue.commands.doctor.command import run as run
