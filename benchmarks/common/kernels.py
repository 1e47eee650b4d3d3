"""The engine's kernels by themselves: programs of benchmarks/engine_kernel, compiled when they are first needed."""

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "tests" / "engine" / "fortran"
"""Where their CMakeLists.txt lies, which builds the drivers of the tests too."""


def program(name: str, build: Path) -> Path:
    """Path of ``kernel_benchmark_mixed``, ``kernel_benchmark_double`` or ``cell_algorithms`` in a build folder."""
    found = next((path for path in build.glob(f"**/{name}") if path.is_file()), None)
    if found is not None:
        return found.resolve()
    print(f"compiling {name} in {build}", flush=True)
    for command in (["cmake", "-S", SOURCE, "-B", build, "-DCMAKE_BUILD_TYPE=Release"],
                    ["cmake", "--build", build, "-j2", "--target", name]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name} cannot be compiled (Debian: apt install cmake gfortran libopenmpi-dev):\n"
                     f"{(done.stdout + done.stderr)[-2000:]}")
    return (build / name).resolve()
