"""``duologue demo``: a whole spoken call with bundled questions, judged."""

from duologue.commands.demo.command import register as register
from duologue.commands.demo.command import run as run
