"""Distributed FFT, forward and backward pair: ours beside FFTW-MPI (Debian) and MKL (PyPI), in one process and in turn.

One core: one rank, one thread. Two cores: one rank with two threads, and two ranks. FFTW as its users run it: MEASURE,
in place, transposed output (apt install libfftw3-mpi3). MKL: in place, one process (pip install mkl in an environment
of its own, then --peers its Python). Ours: complex grids in place on one rank, else to a second array; layouts as the
scheme leaves them. One core: processor time; two: wall time of the slowest rank. Median and least of the repeats; a
ratio above 1 says that we are faster. The library is compiled into --build when it is not there.
"""

import argparse
import ctypes
import ctypes.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import peers
from common.command import Benchmark
from common.kernels import fft_library

ROOT = Path(__file__).resolve().parents[1]
MEASURE, TRANSPOSED_IN, TRANSPOSED_OUT = 0, 1 << 29, 1 << 30
DFTI_COMPLEX, DFTI_REAL = 32, 33
DFTI_CONJUGATE_EVEN_STORAGE, DFTI_COMPLEX_COMPLEX, DFTI_INPUT_STRIDES, DFTI_OUTPUT_STRIDES = 10, 39, 12, 13


def aligned(size, kind):
    """Zeros on a cache line, as FFTW's own allocator gives them."""
    kind = numpy.dtype(kind)
    raw = numpy.zeros(size * kind.itemsize + 64, dtype="u1")
    first = -raw.ctypes.data % 64
    return raw[first:first + size * kind.itemsize].view(kind)


class Ours:
    def __init__(self, n, real, single, ranks):
        from chromafft import Fft
        self.fft = Fft((n, n, n), real=real, single=single)
        random = numpy.random.default_rng(1)
        self.grid = aligned(self.fft.real_layout.size, self.fft.grid_type)
        self.grid[:] = random.standard_normal(self.grid.size)
        # On one rank a complex grid may be transformed in place.
        self.waves = self.grid if ranks == 1 and not real else aligned(self.fft.wave_layout.size, self.fft.wave_type)

    def pair(self):
        self.fft.start(1, self.grid, self.waves)
        self.fft.finish()
        self.fft.start(2, self.waves, self.grid)
        self.fft.finish()

    def scale(self, factor):
        self.grid *= factor


class FftwMpi:
    def __init__(self, n, real, single, threads):
        prefix = "fftwf_" if single else "fftw_"
        letter = "f" if single else ""
        base, omp, mpi = (ctypes.CDLL(f"libfftw3{letter}{part}.so.3", mode=ctypes.RTLD_GLOBAL)
                          for part in ("", "_omp", "_mpi"))
        getattr(omp, prefix + "init_threads")()
        getattr(mpi, prefix + "mpi_init")()
        getattr(omp, prefix + "plan_with_nthreads")(threads)
        communicator = ctypes.c_char.in_dll(ctypes.CDLL("libmpi.so.40"), "ompi_mpi_comm_world")
        world = ctypes.c_void_p(ctypes.addressof(communicator))
        size = getattr(mpi, prefix + "mpi_local_size_3d_transposed")
        size.restype = ctypes.c_ssize_t
        length = ctypes.c_ssize_t
        part = [length() for _ in range(4)]
        local = size(length(n), length(n), length(n // 2 + 1 if real else n), world, *map(ctypes.byref, part))
        self.array = aligned(local, "c8" if single else "c16")
        data = self.array.ctypes.data_as(ctypes.c_void_p)
        n = length(n)
        if real:
            plans = [("mpi_plan_dft_r2c_3d", [], TRANSPOSED_OUT), ("mpi_plan_dft_c2r_3d", [], TRANSPOSED_IN)]
        else:
            plans = [("mpi_plan_dft_3d", [-1], TRANSPOSED_OUT), ("mpi_plan_dft_3d", [1], TRANSPOSED_IN)]
        self.plans = []
        for name, sign, flag in plans:
            make = getattr(mpi, prefix + name)
            make.restype = ctypes.c_void_p
            self.plans.append(ctypes.c_void_p(make(n, n, n, data, data, world, *sign, ctypes.c_uint(MEASURE | flag))))
        self.execute = getattr(base, prefix + "execute")
        self.execute.restype = None
        self.array.view("f4" if single else "f8")[:] = numpy.random.default_rng(1).standard_normal(2 * local)

    def pair(self):
        for plan in self.plans:
            self.execute(plan)

    def scale(self, factor):
        self.array *= factor


class Mkl:
    def __init__(self, n, real, single, threads, path):
        mkl = ctypes.CDLL(path)
        mkl.MKL_Set_Num_Threads(threads)
        half = n // 2 + 1
        self.handles = [ctypes.c_void_p(), ctypes.c_void_p()]
        grid, waves = ((0, 2 * n * half, 2 * half, 1), (0, n * half, half, 1))
        long = ctypes.c_long
        for direction, handle in enumerate(self.handles):
            create = mkl.DftiCreateDescriptor_s_md if single else mkl.DftiCreateDescriptor_d_md
            assert not create(ctypes.byref(handle), DFTI_REAL if real else DFTI_COMPLEX, long(3), (long * 3)(n, n, n))
            if real:
                mkl.DftiSetValue(handle, DFTI_CONJUGATE_EVEN_STORAGE, DFTI_COMPLEX_COMPLEX)
                here, there = (waves, grid) if direction else (grid, waves)
                mkl.DftiSetValue(handle, DFTI_INPUT_STRIDES, (long * 4)(*here))
                mkl.DftiSetValue(handle, DFTI_OUTPUT_STRIDES, (long * 4)(*there))
            assert not mkl.DftiCommitDescriptor(handle)
        self.mkl, self.threads = mkl, threads
        size = n * n * (half if real else n)
        self.array = aligned(size, "c8" if single else "c16")
        self.array.view("f4" if single else "f8")[:] = numpy.random.default_rng(1).standard_normal(2 * size)
        self.data = self.array.ctypes.data_as(ctypes.c_void_p)

    def pair(self):
        self.mkl.MKL_Set_Num_Threads(self.threads)
        self.mkl.DftiComputeForward(self.handles[0], self.data)
        self.mkl.DftiComputeBackward(self.handles[1], self.data)

    def scale(self, factor):
        self.array *= factor


def rank_main(options):
    """One rank: times all libraries in turn and, on rank 0, writes medians."""
    global numpy
    import numpy
    from chromafft import start_mpi, stop_mpi, wait_for_all
    rank, ranks = start_mpi()
    threads = int(os.environ["OMP_NUM_THREADS"])
    clock = time.process_time if ranks == threads == 1 else time.perf_counter
    results = []
    for n in options.sizes:
        for real in (False, True):
            single = not options.double
            libraries = {"chromabuild": Ours(n, real, single, ranks)}
            if options.fftw:
                libraries["FFTW-MPI"] = FftwMpi(n, real, single, threads)
            if options.mkl and ranks == 1:
                libraries["MKL"] = Mkl(n, real, single, threads, options.mkl)
            times = {name: [] for name in libraries}
            for repeat in range(options.repeats + 2):
                for name, one in libraries.items():
                    wait_for_all()
                    start = clock()
                    one.pair()
                    wait_for_all()
                    if repeat >= 2:
                        times[name].append(1e3 * (clock() - start))
                    one.scale(1 / n**3)
            results.append({"n": n, "kind": "r2c" if real else "c2c", "times": times})
            del libraries
    if rank == 0:
        Path(options.results).write_text(json.dumps(results))
    stop_mpi()


def has_fftw() -> bool:
    """Whether FFTW's MPI library is there; else a sentence."""
    try:
        ctypes.CDLL("libfftw3_mpi.so.3", mode=ctypes.RTLD_GLOBAL)
    except OSError:
        print(peers.missing("libfftw3_mpi.so.3"), file=sys.stderr)
        return False
    return True


def main() -> None:
    """Start the ranks, collect their times."""
    if len(sys.argv) > 2 and sys.argv[1] == "rank":
        rank_main(argparse.Namespace(**json.loads(sys.argv[2])))
        return
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--build", type=Path, default=ROOT / "build/fft", help="folder of libchromafft.so")
    add("--peers", type=Path, metavar="PYTHON", help="Python of an environment with mkl (PyPI)")
    add("--sizes", type=int, nargs="+", default=[128, 256])
    add("--double", action="store_true")
    add("--repeats", type=int, default=15)
    add("--cores", type=int, nargs="+", default=[1, 2])
    given = benchmark.start(quick={"sizes": [48], "repeats": 3, "cores": [1]})
    library, mkl = fft_library(given.build), peers.mkl(given.peers)
    wanted = {"fftw": has_fftw(), "mkl": str(mkl) if mkl else "", "sizes": given.sizes, "double": given.double,
              "repeats": given.repeats}
    table = benchmark.table("pairs", f"Time (ms) of a forward and a backward transform, "
                            f"{'double' if given.double else 'single'} precision: median (minimum)", grid="", kind="",
                            ranks="", threads="", library="", **{"time, ms": ".2f", "time / chromabuild": ".2f"})
    for ranks, threads in ((1, 1), (1, 2), (2, 1)):
        if max(ranks, threads) not in given.cores:
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "times.json")
            environment = dict(os.environ, OMP_NUM_THREADS=str(threads), CHROMAFFT_LIBRARY=str(library),
                               MKL_THREADING_LAYER="GNU", OPENBLAS_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1",
                               OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", PYTHONPATH=os.pathsep.join(
                                   [str(ROOT / "fortran/fft"), *filter(None, sys.path)]))
            launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
            subprocess.run([*launch, sys.executable, __file__, "rank", json.dumps({**wanted, "results": str(file)})],
                           env=environment, check=True)
            results = json.loads(file.read_text())
        for result in results:
            ours = statistics.median(result["times"]["chromabuild"])
            for name, times in result["times"].items():
                median = statistics.median(times)
                table.row(f"{result['n']}^3", result["kind"], ranks, threads, name,
                          {"median": median, "least": min(times)}, None if name == "chromabuild" else median / ours)
    benchmark.finish()


if __name__ == "__main__":
    main()
