"""Energy and forces of a cluster by plane waves: one run of chromaqm a geometry, kept for the next time."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from chromabuild.base.constants import ANGSTROM_PER_BOHR, KCAL_PER_HARTREE
from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.base.files import atomic_path
from chromabuild.quantum import chromaqm

BUILT_IN, WITHOUT_BUILT_IN = ("H", "C", "N", "O", "Mg", "Si", "P"), "PBE"
"""Elements of the table of chromaqm, and the functional that it has none for."""
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


@dataclass(frozen=True, eq=False)
class PointRun:
    """Electrons at positions (n, 3) angstrom: a run of chromaqm, its files ``name.*`` in ``folder``."""

    folder: Path
    name: str
    elements: Sequence[str]
    position: np.ndarray
    box: np.ndarray
    charge: int
    method: Method
    begin: "PointRun | None" = None
    """The run whose states this one begins from; None: fresh ones."""
    leaves_states: bool = False
    """Whether others begin from the states of this one."""

    def path(self, ending: str) -> Path:
        """The file ``name.ending``."""
        return self.folder / f"{self.name}.{ending}"

    def input(self) -> dict[Path, str]:
        """File -> text: atoms, and the control file after them."""
        atoms = f"{len(self.elements)}\n{self.name}, angstrom\n" + "".join(
            f"{element} {x:.8f} {y:.8f} {z:.8f}\n"
            for element, (x, y, z) in zip(self.elements, self.position.tolist(), strict=True))
        begin = [f"statesfile = {self.begin.states_file()}"] if self.begin else []
        states = [f"restartfile = {self.states_file()}"] if self.leaves_states else []
        control = "\n".join([
            "[INPUT]", f"atomfile = {self.path('xyz').resolve()}", *begin, *self.method.potentials,
            "[OUTPUT]", f"resultfile = {self.path('json').resolve()}", *states,
            "[SYSTEM]", "box = " + " ".join(f"{edge:.1f}" for edge in self.box), f"charge = {self.charge}",
            "boundary = CLUSTER",
            "[ELECTRONS]", f"cutoff = {self.method.cutoff:g}", f"functional = {self.method.functional}",
            "[MINIMIZE]", "tolerance = 1.0e-8", ""])
        return {self.path("xyz"): atoms, self.path("inp"): control}

    def states_file(self, rank: str = "()") -> Path:
        """States at the minimum, a file a rank."""
        return self.folder.resolve() / f"{self.name}_{rank}.states"

    def has_input(self) -> bool:
        """Whether its files, and those of the runs that it follows from, are of this input."""
        return (all(path.is_file() and path.read_text(encoding="utf-8") == text for path, text in self.input().items())
                and (self.begin is None or self.begin.has_input()))

    def is_done(self) -> bool:
        """Whether there is a whole result of this input, and its minimum was reached."""
        result = self.path("json")
        try:
            return self.has_input() and result.is_file() and chromaqm.read_result(result).get("converged") is True
        except IntegrityError:
            return False

    def has_states(self) -> bool:
        """Whether its states are there, of as many ranks as the next run has."""
        return set(self.folder.resolve().glob(self.states_file("*").name)) == {
            self.states_file(str(rank)) for rank in range(self.method.ranks)}

    def drop_states(self) -> None:
        """Remove its states, which are as large as memory."""
        for path in self.folder.glob(self.states_file("*").name + "*"):
            path.unlink()

    def write_input(self) -> None:
        """Write atoms and control file."""
        for path, content in self.input().items():
            with atomic_path(path) as part:
                part.write_text(content, encoding="utf-8")

    def compute(self) -> None:
        """Run chromaqm anew. Raises what chromaqm.run raises."""
        self.path("json").unlink(missing_ok=True)
        self.drop_states()
        self.write_input()
        with open(self.path("log"), "w", encoding="utf-8") as output:
            chromaqm.run(self.path("inp"), self.method.ranks, self.method.threads, output=output)

    def refuse(self) -> None:
        """Raise BadInputError where chromaqm refuses this input, too little memory among it; nothing is left behind."""
        with TemporaryDirectory() as folder:
            trial = replace(self, folder=Path(folder), begin=None)
            trial.write_input()
            control = trial.path("inp")
            try:
                chromaqm.check(control, self.method.ranks)
            except BadInputError as error:
                # The user gave options, not this control file.
                sentence = re.sub(rf"^{re.escape(str(control))}(, line \d+)?: ", "", str(error))
                if " GB of memory" in sentence:
                    sentence = (sentence.partition(";")[0] + "; give a smaller --radius, a shorter --scan or a lower "
                                "--cutoff")
                raise BadInputError(sentence) from None

    def point(self) -> Point:
        """Energy and forces of a run that is done. Raises IntegrityError where they are of another cluster."""
        found = chromaqm.read_result(self.path("json"))
        energy = found["total"] * KCAL_PER_HARTREE
        forces = np.array(found["forces"]) * KCAL_PER_HARTREE / ANGSTROM_PER_BOHR
        if forces.shape != self.position.shape:
            raise IntegrityError(f"{self.path('json')} holds forces on {len(forces)} atoms, not {len(self.position)}: "
                                 "remove it and run again")
        if self.method.with_dispersion:
            dispersion, slope = dispersion_of(self.elements, self.position, self.method.functional)
            energy, forces = energy + dispersion, forces - slope
        # The grid of exchange and correlation breaks translation: what is left over is no force.
        return Point(energy, forces - forces.mean(axis=0))


def nearest_first(position: np.ndarray, first: int) -> list[tuple[int, int]]:
    """An order of geometries (p, n, 3), and beside each the one before that it is nearest to (itself for the first).

    After ``first``, each time the one comes that is nearest to any before; of equals, beside the earliest. Nothing but
    the geometries decides.
    """
    # Rounded, or the last bits would choose among equals.
    apart = np.round(np.linalg.norm(position[:, None] - position, axis=(2, 3)), 6)
    order = [(first, first)]
    while len(order) < len(position):
        done = [k for k, _ in order]
        left = [k for k in range(len(position)) if k not in done]
        row, column = np.unravel_index(apart[np.ix_(done, left)].argmin(), (len(done), len(left)))
        order.append((left[column], done[row]))
    return order


def compute_all(runs: Sequence[PointRun], say: Callable[[int], None]) -> None:
    """Compute those that are not done of runs, each of which stands after the one that it begins from.

    States are kept until all that begin from them are done. Where they are needed and are not there, or are of another
    number of ranks, their run is done once more: it gives the same again. ``say`` is told which run begins.
    Raises what chromaqm.run raises.
    """
    left: list[PointRun] = []
    for run in reversed(runs):
        if not run.is_done() or (not run.has_states() and any(one.begin is run for one in left)):
            left.append(run)
    for k, run in enumerate(runs):
        if run in left:
            say(k)
            run.compute()
            left.remove(run)
        for one in {run, run.begin} - {None} - {other.begin for other in left}:
            one.drop_states()


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
