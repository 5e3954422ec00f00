"""``python -m duologue``."""

from __future__ import annotations

import sys

from duologue.cli import main

if __name__ == "__main__":
    sys.exit(main())
