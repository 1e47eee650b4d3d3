"""What benchmarks compile when they first need it: programs of benchmarks/engine_kernel, and the library of the FFT."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "tests" / "engine" / "fortran"
"""Where the CMakeLists.txt of the kernels lies, which builds the drivers of the tests too."""


def program(name: str, build: Path) -> Path:
    """Path of ``kernel_benchmark_mixed``, ``kernel_benchmark_double`` or ``cell_algorithms`` in a build folder."""
    return _built(name, SOURCE, build, name)


def fft_library(build: Path) -> Path:
    """Path of ``libchromafft.so`` in a build folder."""
    return _built("libchromafft.so", ROOT / "fortran" / "fft", build)


def _built(name: str, source: Path, build: Path, target: str = "all") -> Path:
    found = next((path for path in build.glob(f"**/{name}") if path.is_file()), None)
    if found is not None:
        return found.resolve()
    print(f"compiling {name} in {build}", flush=True)
    for command in (["cmake", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release"],
                    ["cmake", "--build", build, "-j2", "--target", target]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name} cannot be compiled (Debian: apt install cmake gfortran libopenmpi-dev):\n"
                     f"{(done.stdout + done.stderr)[-2000:]}")
    return next(build.glob(f"**/{name}")).resolve()
