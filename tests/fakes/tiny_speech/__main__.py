from __future__ import annotations

import argparse
from pathlib import Path

from tests.fakes.tiny_speech.make import MAKERS, make


def main() -> None:
    parser = argparse.ArgumentParser(description="Write tiny speech models.")
    parser.add_argument("names", nargs="+", choices=sorted(MAKERS), metavar="NAME")
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    for name in args.names:
        make(name, args.folder / name)


if __name__ == "__main__":
    main()
