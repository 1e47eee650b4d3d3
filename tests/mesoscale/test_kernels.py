"""The kernels' handles: memory is given back, and a closed kernel answers with an exception."""

import resource
from dataclasses import replace

import numpy as np
import pytest

from mesoscale.chain_kernel import ChainKernel
from mesoscale.fibre import Fibre
from mesoscale.field import core_field
from mesoscale.kernels import FibreKernel, kernel_energies, kernel_of
from mesoscale.model import Chain, Parameters, build_chain, straight_conformation
from mesoscale.tails import TailWalk, tails_of_fibre

FIBRE = Fibre("ACGT" * 125, (95, 270, 420), linker_histone=(True, False, False))
PARAMETERS = Parameters()


@pytest.fixture(scope="module")
def chain() -> Chain:
    plain = build_chain(FIBRE, PARAMETERS)
    shape = plain.shape
    return replace(plain, field=core_field(shape.site, shape.site_charge, plain.kappa, plain.cutoff))


def peak_memory() -> int:
    """Most kB of memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_memory_of_kernels_is_given_back(chain):
    """Three hundred fibres of some 0.2 MB and their chains; fields of 5 MB."""
    position, frame = straight_conformation(chain)
    tails = tails_of_fibre(FIBRE, PARAMETERS)

    def work(times: int) -> None:
        for _ in range(times):
            kernel_energies(replace(chain), position, frame)
            TailWalk.begin(tails, chain, position, frame)
        for _ in range(times // 30):
            core_field(chain.shape.site[:3], chain.shape.site_charge[:3], chain.kappa, chain.cutoff)

    work(30)
    before = peak_memory()
    work(300)
    assert peak_memory() - before < 20_000


def test_a_kernel_lives_as_long_as_its_chain(chain):
    assert kernel_of(chain) is kernel_of(chain)
    assert kernel_of(replace(chain)) is not kernel_of(chain)


def test_a_closed_kernel_raises(chain):
    position, frame = straight_conformation(chain)
    kernel = FibreKernel(chain).place(position, frame)
    kernel.close()
    kernel.close()
    with pytest.raises(ValueError, match="kernel of a fibre was closed"):
        kernel.energies()
    with pytest.raises(ValueError, match="closed"):
        kernel.place(position, frame)
    walk = TailWalk.begin(tails_of_fibre(FIBRE, PARAMETERS), chain, position, frame)
    walk.kernel.close()
    with pytest.raises(ValueError, match="kernel of flexible chains was closed"):
        walk.sweep(np.random.default_rng(1))


def test_a_conformation_of_another_fibre_is_refused(chain):
    position, frame = straight_conformation(chain)
    with pytest.raises(ValueError, match=f"a fibre of {chain.n} particles"):
        FibreKernel(chain).place(position[:-1], frame)
    tails = tails_of_fibre(FIBRE, PARAMETERS)
    with pytest.raises(ValueError, match=f"{tails.first[-1]} beads"):
        ChainKernel(tails).place(np.zeros((3, 3)))
