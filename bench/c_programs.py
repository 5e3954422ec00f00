"""C programs of the benchmarks, compiled when they are first needed."""

import hashlib
import shutil
import subprocess
from pathlib import Path

from cache import bench_cache


def compiled(source: Path) -> Path:
    """The program made from one C file; compiled again when the file or a header has changed.

    Raises:
        SystemExit: There is no C compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise SystemExit(
            f"{source.name} needs a C compiler: install one, for example `apt install gcc`"
        )
    parts = [source, *sorted(source.parent.glob("*.h"))]
    digest = hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()[:12]
    program = bench_cache() / f"{source.stem}-{digest}"
    if not program.exists():
        print(f"compiling {source.name}", flush=True)
        unfinished = program.with_suffix(".new")
        subprocess.run([compiler, "-O3", "-o", unfinished, source, "-lm"], check=True)
        unfinished.rename(program)
    return program
