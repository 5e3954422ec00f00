"""The benchmarks are scripts in a folder of their own: let their modules be found."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))
