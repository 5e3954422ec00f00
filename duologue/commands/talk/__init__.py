"""``duologue talk``: a call in the terminal, through a sound card or through files."""

from duologue.commands.talk.command import register as register
from duologue.commands.talk.command import run as run
