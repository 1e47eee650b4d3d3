"""Products of tall matrices, of each instruction set that this processor has, beside NumPy."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "fortran/planewave/products"
FLAGS = {"baseline": "", "avx2": "avx2", "avx512": "avx512bw"}
DOUBLES = ctypes.POINTER(ctypes.c_double)
LONG = ctypes.c_long


class Kernels(ctypes.Structure):
    """product_kernels of product_kernel.h."""

    _fields_ = [("overlap", ctypes.CFUNCTYPE(None, LONG, LONG, LONG, DOUBLES, LONG, DOUBLES, LONG, DOUBLES, LONG)),
                ("rotate", ctypes.CFUNCTYPE(None, LONG, LONG, LONG, DOUBLES, LONG, DOUBLES, DOUBLES, LONG, DOUBLES))]


@pytest.fixture(scope="module", params=FLAGS)
def kernels(request, tmp_path_factory):
    """Of one set, compiled alone."""
    about = Path("/proc/cpuinfo")
    known = about.read_text().split() if about.exists() else []
    if FLAGS[request.param] and FLAGS[request.param] not in known:
        pytest.skip(f"this processor has no {request.param}")
    library = tmp_path_factory.mktemp("products") / "products.so"
    subprocess.run([shutil.which("gcc") or "cc", "-O2", "-shared", "-fPIC", "-o", library,
                    FOLDER / f"product_kernel_{request.param}.c"], check=True)
    return Kernels.in_dll(ctypes.CDLL(library), f"product_kernels_{request.param}")


@pytest.mark.parametrize(("k", "m", "n"), [(1, 1, 1), (7, 3, 5), (512, 4, 6), (1037, 13, 29), (30, 17, 8), (0, 2, 2)])
def test_products_are_those_of_numpy(kernels, k, m, n):
    """Any numbers of rows and columns, a gap of two rows between columns. A sum of k products of numbers below 1 errs
    by some k roundings at most; what stands beside the result stays."""
    random = np.random.default_rng(k + m + n)
    a, b, x, c = (np.asfortranarray(random.uniform(-1, 1, shape)) for shape in
                  ((k + 2, m), (k + 2, n), (m, n), (k + 2, n)))
    s = np.asfortranarray(random.uniform(-1, 1, (m + 1, n)))
    expected_s, expected_c = s.copy(), c.copy()
    expected_s[:m] += a[:k].T @ b[:k]
    expected_c[:k] += a[:k] @ x
    pointers = {id(array): array.ctypes.data_as(DOUBLES) for array in (a, b, x, c, s)}
    kernels.overlap(k, m, n, pointers[id(a)], k + 2, pointers[id(b)], k + 2, pointers[id(s)], m + 1)
    work = np.empty(m * (n + 80))
    kernels.rotate(k, m, n, pointers[id(a)], k + 2, pointers[id(x)], pointers[id(c)], k + 2,
                   work.ctypes.data_as(DOUBLES))
    np.testing.assert_allclose(s, expected_s, rtol=0, atol=(k + 2) * 2.3e-16)
    np.testing.assert_allclose(c, expected_c, rtol=0, atol=(m + 2) * 2.3e-16)
