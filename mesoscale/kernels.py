"""The border to the Fortran kernels: a chain and a conformation in their order and layout."""

import numpy as np
from numpy.typing import NDArray

from mesoscale import _kernels
from mesoscale.field import NONE
from mesoscale.model import TERMS, Chain


def set_threads(threads: int) -> None:
    """Share the work of the kernels among so many threads from now on; without it OpenMP decides. Results do not depend
    on it."""
    _kernels.thread_count.set_threads(threads)


def kernel_arguments(chain: Chain, position: NDArray[np.float64], frame: NDArray[np.float64]) -> dict:
    """Everything the Fortran kernels need of a chain and a conformation, in their order and layout."""
    shape = chain.shape
    # f2py takes no empty arrays: without contacts there is one of no strength.
    none = len(chain.contact) == 0
    contact = np.ones((1, 2), np.int32) if none else chain.contact + 1

    def columns(array: NDArray) -> NDArray:
        return np.asfortranarray(np.asarray(array).T)

    return {
        # Copies: the kernel moves them in place.
        "position": np.array(np.asarray(position).T, order="F"),
        "frame": np.array(np.transpose(frame, (1, 2, 0)), order="F"),
        "core": chain.core,
        "linker": chain.linker,
        "rest_length": chain.rest_length,
        "stretch_k": chain.stretch_k,
        "bend_k": chain.bend_k,
        "twist_k": chain.twist_k,
        "rest_twist": chain.rest_twist,
        "charge": chain.charge,
        "joint_point": columns(shape.joint_point),
        "joint_frame": np.asfortranarray(np.transpose(shape.joint_frame, (1, 2, 0))),
        "site": columns(shape.site),
        "site_charge": shape.site_charge,
        "sphere": columns(shape.sphere),
        "sphere_radius": shape.sphere_radius,
        "sphere_near": columns(shape.sphere_near),
        "contact": columns(contact),
        "contact_k": np.zeros(1) if none else chain.contact_k,
        "contact_distance": np.zeros(1) if none else chain.contact_distance,
        "scalar": np.array([
            chain.bjerrum_length, chain.kappa, chain.cutoff, chain.excluded_k, *chain.sigma, chain.dna_radius,
            chain.floor_k, chain.confinement_k, chain.confinement_radius,
            chain.wall_k, *chain.wall, chain.kappa if chain.dna_kappa is None else chain.dna_kappa,
        ]),
    }  # fmt: skip


def sampling_arguments(chain: Chain) -> dict:
    """What the Monte Carlo kernel needs besides: limbs, or one that is not there, and the table of the cores' field."""
    limbs, field = chain.limbs, (chain.field or NONE).arguments()
    if limbs is None:
        cores = max(1, len(chain.cores))
        kind = np.zeros((1, cores), np.int32, order="F")
        return {"limb": np.zeros((3, 1, cores), order="F"), "limb_charge": np.zeros((1, cores), order="F"),
                "limb_kind": kind, "sigma": np.zeros((5, 5)), "strength": np.zeros((5, 5)), **field}  # fmt: skip
    return {
        "limb": np.asfortranarray(np.transpose(limbs.place, (2, 1, 0))),
        "limb_charge": np.asfortranarray(limbs.charge.T),
        "limb_kind": np.asfortranarray(limbs.kind.T),
        "sigma": np.asfortranarray(limbs.sigma),
        "strength": np.asfortranarray(limbs.strength),
        **field,
    }


def kernel_energies(chain: Chain, position: NDArray[np.float64], frame: NDArray[np.float64]) -> NDArray[np.float64]:
    """Every term of the energy in kBT, in the order of TERMS, by the Fortran kernel."""
    if chain.n == 1:
        return np.zeros(len(TERMS))  # a core alone has no linker to sample
    arguments = kernel_arguments(chain, position, frame)
    return _kernels.fibre_monte_carlo.total_energy(**arguments, **sampling_arguments(chain))
