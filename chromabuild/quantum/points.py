"""Energy and forces of a cluster by plane waves: one run of chromaqm a geometry, kept for the next time."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chromabuild.base.constants import ANGSTROM_PER_BOHR, KCAL_PER_HARTREE
from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.base.files import atomic_path
from chromabuild.base.machine import memory_here
from chromabuild.quantum import chromaqm

VALENCE = {"H": 1, "C": 4, "N": 5, "O": 6, "Na": 1, "Mg": 2, "P": 5, "S": 6, "Cl": 7, "K": 1}
"""Electrons of the usual potentials."""
BUILT_IN, WITHOUT_BUILT_IN = ("H", "C", "N", "O", "Mg", "Si", "P"), "PBE"
"""Elements of the table of chromaqm, and the functional that it has none for."""
BYTES_A_POINT, ARRAYS_OF_STATES, KEPT_AT_MOST = 225.0, 7.0, 2048 * 2**20
"""Of chromaqm: fields and lines of transforms for a point of the grid, copies of all states in waves, and the room that
states on the grid may take. 4.2 GB for 29 atoms where 3.8 were measured. chromaqm reckons with
the same numbers (fortran/planewave/input/memory_need.f90)."""
MARGIN = 8.0
"""Angstrom that a box is longer than twice its cluster: room for the tails of the electrons on both sides."""


@dataclass(frozen=True)
class Method:
    """How electrons are computed. ``cutoff`` in rydberg; ``potentials``: lines of [INPUT] of chromaqm, upf and gth."""

    functional: str = "BLYP"
    cutoff: float = 90.0
    potentials: tuple[str, ...] = ()
    ranks: int = 1
    threads: int = 1
    with_dispersion: bool = False
    """Whether to add D3 with damping by Becke and Johnson (Grimme et al. 2011)."""


@dataclass(frozen=True)
class Point:
    """One geometry: kcal/mol, and (n, 3) kcal/mol/angstrom whose sum is taken to be zero."""

    energy: float
    forces: np.ndarray


def upf_line(number: int, text: str) -> str:
    """A line of [INPUT] from ``O=O.blyp-mt.UPF``. Raises BadInputError."""
    element, found, file = text.partition("=")
    if not found or not Path(file).is_file():
        raise BadInputError(f"--upf {text}: there is no file {file or text}; write ELEMENT=FILE, for instance "
                            "O=O.blyp-mt.UPF")
    return f"upf{number} = {element} {Path(file).resolve()}"


def refuse_potentials(method: Method, elements: Sequence[str]) -> None:
    """Raise BadInputError where an element has no potential, or ``--upf`` names one twice or one that is not there."""
    named = [line.split()[2] for line in method.potentials]
    for element in elements:
        if element not in named and (element not in BUILT_IN or method.functional.upper() == WITHOUT_BUILT_IN):
            raise BadInputError(f"there is no built-in potential of {element} for {method.functional}: name a UPF file "
                                f"of it by --upf {element}=FILE")
    for element in named:
        if element not in elements:
            raise BadInputError(f"--upf {element}=...: the cluster holds no {element}, but "
                                f"{', '.join(sorted(set(elements)))}: leave it out, or write the element as there")
        if named.count(element) > 1:
            raise BadInputError(f"--upf {element}=... is there {named.count(element)} times: leave one")


def box_around(position: np.ndarray) -> np.ndarray:
    """(3,) angstrom: edges of a box for all geometries (p, n, 3) of a cluster."""
    return np.ceil(10 * (2 * np.ptp(position, axis=1).max(axis=0) + MARGIN)) / 10


def refuse_beyond_memory(elements: Sequence[str], box: np.ndarray, charge: int, cutoff: float) -> None:
    """Raise BadInputError where chromaqm would need more memory than there is."""
    edges = box / ANGSTROM_PER_BOHR
    points = float(np.prod(2 * np.sqrt(4 * cutoff) * edges / (2 * np.pi)))
    waves = float(np.prod(edges)) * cutoff**1.5 / (12 * np.pi**2)
    states = (sum(VALENCE.get(element, 10) for element in elements) - charge) / 2
    kept = 8 * points * states
    needed = BYTES_A_POINT * points + 16 * ARRAYS_OF_STATES * waves * states + (kept if kept <= KEPT_AT_MOST else 0)
    if needed > memory_here():
        raise BadInputError(f"plane waves for {len(elements)} atoms to {cutoff:g} Ry need {needed / 1e9:.1f} GB, and "
                            f"there are {memory_here() / 1e9:.1f}: give a smaller --radius, a shorter --scan or a "
                            "lower --cutoff")


def compute(folder: Path, name: str, elements: Sequence[str], position: np.ndarray, box: np.ndarray, charge: int,
            method: Method) -> Point:
    """Electrons at positions (n, 3); files ``name.*`` in ``folder``. What is there for the same input is read.

    Raises BadInputError where chromaqm refuses the input, NotConvergedError where its minimum is not reached.
    """
    atoms = f"{len(elements)}\n{name}, angstrom\n" + "".join(
        f"{element} {x:.8f} {y:.8f} {z:.8f}\n" for element, (x, y, z) in zip(elements, position.tolist(), strict=True))
    result, control, places = (folder / f"{name}{ending}" for ending in (".json", ".inp", ".xyz"))
    text = "\n".join([
        "[INPUT]", f"atomfile = {places.resolve()}", *method.potentials,
        "[OUTPUT]", f"resultfile = {result.resolve()}",
        "[SYSTEM]", "box = " + " ".join(f"{edge:.1f}" for edge in box), f"charge = {charge}", "boundary = CLUSTER",
        "[ELECTRONS]", f"cutoff = {method.cutoff:g}", f"functional = {method.functional}",
        "[MINIMIZE]", "tolerance = 1.0e-8", ""])
    if not (_holds(control, text) and _holds(places, atoms) and _is_done(result)):
        result.unlink(missing_ok=True)
        for path, content in ((places, atoms), (control, text)):
            with atomic_path(path) as part:
                part.write_text(content, encoding="utf-8")
        log = folder / f"{name}.log"
        try:
            with open(log, "w", encoding="utf-8") as output:
                chromaqm.run(control, method.ranks, method.threads, output=output)
        except BadInputError as error:
            # The user gave options, not this control file: what is wrong with them needs no file of ours.
            for path in (control, places, log):
                path.unlink(missing_ok=True)
            with suppress(OSError):  # where there are points already
                folder.rmdir()
                folder.parent.rmdir()
            raise BadInputError(re.sub(rf"^{re.escape(str(control))}, line \d+: ", "", str(error))) from None
    found = chromaqm.read_result(result)
    energy = found["total"] * KCAL_PER_HARTREE
    forces = np.array(found["forces"]) * KCAL_PER_HARTREE / ANGSTROM_PER_BOHR
    if forces.shape != position.shape:
        raise IntegrityError(f"{result} holds forces on {len(forces)} atoms, not {len(position)}: remove it and run "
                             "again")
    if method.with_dispersion:
        dispersion, slope = dispersion_of(elements, position, method.functional)
        energy, forces = energy + dispersion, forces - slope
    # The grid of exchange and correlation breaks translation: what is left over is no force.
    return Point(energy, forces - forces.mean(axis=0))


def dispersion_of(elements: Sequence[str], position: np.ndarray, functional: str) -> tuple[float, np.ndarray]:
    """D3(BJ) energy (kcal/mol) and its gradient (n, 3) (kcal/mol/angstrom), by the library simple-dftd3.

    Raises BadInputError where it is not installed or knows no parameters for the functional.
    """
    try:
        from dftd3.interface import DispersionModel, RationalDampingParam
    except ImportError:
        raise BadInputError("--dispersion needs the package dftd3: pip install 'chromabuild[qm]', or leave it "
                            "out") from None
    from openmm import app

    numbers = np.array([app.Element.getBySymbol(element).atomic_number for element in elements])
    try:
        parameters = RationalDampingParam(method=functional.lower())
    except RuntimeError:
        raise BadInputError(f"--dispersion has no parameters for {functional}: use BLYP or PBE") from None
    found = DispersionModel(numbers, position / ANGSTROM_PER_BOHR).get_dispersion(parameters, grad=True)
    return found["energy"] * KCAL_PER_HARTREE, found["gradient"] * KCAL_PER_HARTREE / ANGSTROM_PER_BOHR


def _is_done(result: Path) -> bool:
    """Whether a result file is whole, and its minimum was reached."""
    try:
        return result.is_file() and chromaqm.read_result(result).get("converged") is True
    except IntegrityError:
        return False


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text
