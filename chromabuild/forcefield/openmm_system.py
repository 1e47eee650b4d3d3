"""What an OpenMM System says of its atoms and energy terms, in our units and in the forms of our topology file.

Where OpenMM keeps a term as a formula in text (harmonic impropers, special Lennard-Jones pairs, 1-4 pairs), its meaning
is found by evaluating it, so that it does not matter how a reader of OpenMM writes the formula.
"""

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import openmm
from openmm import unit

from chromabuild.base.constants import ANGSTROM_PER_NM, KJ_PER_KCAL
from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.virtual_sites import read_sites

Term = dict[str, np.ndarray]
"""``atoms`` (m, 2..5) int64 and the parameter columns (m,) of docs/reference/file-formats.md."""

_ATTRIBUTE = re.compile(r'(\w+)="')
_PER_AREA = 1.0 / KJ_PER_KCAL / ANGSTROM_PER_NM**2
_PROBE_DISTANCES = (0.25, 0.45, 0.33)
"""nm: two to find c12 and c6, one to check that the formula is c12/r^12 - c6/r^6."""
_TO_C12, _TO_C6 = ANGSTROM_PER_NM**12 / KJ_PER_KCAL, ANGSTROM_PER_NM**6 / KJ_PER_KCAL


@dataclass
class SystemTerms:
    """All atoms and terms of a System. Terms that it does not have are missing from ``terms``."""

    mass: np.ndarray
    charge: np.ndarray
    lj_type: np.ndarray
    """(n,) type of each atom, in order of first use."""
    sigma: np.ndarray
    """(t,) angstrom."""
    epsilon: np.ndarray
    """(t,) kcal/mol."""
    c12: np.ndarray | None = None
    """(t, t) kcal/mol angstrom^12; None when the Lorentz-Berthelot rule holds for all pairs."""
    c6: np.ndarray | None = None
    terms: dict[str, Term] = field(default_factory=dict)
    """Under ``bond`` (Urey-Bradley terms among them), ``angle``, ``dihedral``, ``improper``, ``cmap``, ``pair`` (all
    excluded pairs; 1-4 parameters, or zeros) and ``virtual_site``."""
    cmap_energy: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))


def read_system(system: openmm.System, rigid: openmm.System | None = None) -> SystemTerms:
    """Parameters of all atoms and terms. Raises BadInputError for a force that a topology file cannot hold.

    ``rigid``: the same with constraints, where virtual sites may be in local frames of rigid atoms.
    """
    mass = np.array([system.getParticleMass(i).value_in_unit(unit.dalton) for i in range(system.getNumParticles())])
    terms: dict[str, list[Term]] = {}
    sites = read_sites(system, rigid)
    if len(sites["atoms"]):
        terms["virtual_site"] = [sites]
    particle = np.zeros((len(mass), 3))
    special_type, special = np.zeros(len(mass), dtype=np.int64), None
    excluded, maps = [], np.empty((0, 0))
    for force in system.getForces():
        if isinstance(force, openmm.CMMotionRemover):
            continue
        if isinstance(force, openmm.NonbondedForce):
            particle, pair = _read_nonbonded(force)
            terms.setdefault("pair", []).append(pair)
        elif isinstance(force, openmm.CustomNonbondedForce):
            special_type, special = _read_special_pairs(force)
            excluded.append(np.sort(_table(force, "Exclusions", "p1 p2").astype(np.int64), axis=1))
        elif isinstance(force, openmm.CMAPTorsionForce):
            term, maps = _read_cmap(force)
            terms.setdefault("cmap", []).append(term)
        else:
            for kind, reader, name in _READERS:
                if isinstance(force, kind):
                    terms.setdefault(name, []).append(reader(force))
                    break
            else:
                raise BadInputError(f"the force field uses {force.getName()}, which has no place in a topology file")
    joined = {name: {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
              for name, parts in terms.items()}
    pair14 = joined.pop("pair14", None)
    if pair14 is not None:
        joined["pair"] = _with_lennard_jones(joined["pair"], pair14)
    for pairs in excluded:
        if not np.array_equal(np.unique(pairs, axis=0), np.unique(joined["pair"]["atoms"], axis=0)):
            raise BadInputError("the force field excludes different pairs from Lennard-Jones and from charges, which a "
                                "topology file cannot hold")
    return _with_types(mass, particle, special_type, special, joined, maps)


def separate_urey_bradley(harmonic: Term, bonds: np.ndarray, n_atoms: int) -> tuple[Term, Term]:
    """Harmonic terms between the pairs ``bonds`` (b, 2) of ``n_atoms`` atoms, and the others."""
    def key(pairs: np.ndarray) -> np.ndarray:
        return pairs.min(axis=1, initial=n_atoms) * n_atoms + pairs.max(axis=1, initial=-1)

    is_bond = np.isin(key(harmonic["atoms"]), key(bonds))
    return tuple({column: values[rows] for column, values in harmonic.items()} for rows in (is_bond, ~is_bond))


def _with_types(mass: np.ndarray, particle: np.ndarray, special_type: np.ndarray,
                special: tuple[np.ndarray, np.ndarray] | None, terms: dict[str, Term],
                maps: np.ndarray) -> SystemTerms:
    """Number the Lennard-Jones types, and add pair matrices where there are special pairs."""
    keys = np.column_stack([particle[:, 1:], special_type])
    _, first, member = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    first = np.sort(first)
    result = SystemTerms(mass=mass, charge=particle[:, 0], lj_type=rank[member.ravel()], sigma=particle[first, 1],
                         epsilon=particle[first, 2], terms=terms, cmap_energy=maps)
    if special is not None:
        sigma6 = (0.5 * (result.sigma[:, None] + result.sigma)) ** 6
        c6 = 4 * np.sqrt(result.epsilon[:, None] * result.epsilon) * sigma6
        of = np.ix_(special_type[first], special_type[first])
        result.c12, result.c6 = c6 * sigma6 + special[0][of], c6 + special[1][of]
        own12, own6 = np.diag(result.c12), np.diag(result.c6)
        attractive = (own6 > 0) & (own12 > 0)
        ratio = np.divide(own12, own6, out=np.ones_like(own6), where=attractive)
        result.sigma = ratio ** (1 / 6)
        result.epsilon = np.where(attractive, own6 / (4 * ratio), 0.0)
    return result


def _table(force: openmm.Force, group: str, keys: str) -> np.ndarray:
    """Attributes of all terms of a force as (m, keys) float64; OpenMM's own XML is the fast way to get them out.

    All terms of a group have the same attributes in the same order, so that its text is split at quotation marks.
    """
    text = openmm.XmlSerializer.serialize(force)
    start = text.find(f"<{group}>")
    words = text[start:text.find(f"</{group}>", start)].split('"') if start >= 0 else [""]
    names = _ATTRIBUTE.findall(text, start, text.find("/>", start))
    values = np.fromiter(map(float, words[1::2]), float, len(words) // 2).reshape(-1, max(len(names), 1))
    return values[:, [names.index(key) for key in keys.split()]] if names else np.empty((0, len(keys.split())))


def _read_bonds(force: openmm.HarmonicBondForce) -> Term:
    """OpenMM writes harmonic terms as k/2 (x - x0)^2, we as k (x - x0)^2."""
    values = _table(force, "Bonds", "p1 p2 k d")
    return {"atoms": values[:, :2].astype(np.int64), "k": values[:, 2] * 0.5 * _PER_AREA,
            "r0": values[:, 3] * ANGSTROM_PER_NM}


def _read_angles(force: openmm.HarmonicAngleForce) -> Term:
    values = _table(force, "Angles", "p1 p2 p3 k a")
    return {"atoms": values[:, :3].astype(np.int64), "k": values[:, 3] * 0.5 / KJ_PER_KCAL,
            "theta0": np.degrees(values[:, 4])}


def _read_dihedrals(force: openmm.PeriodicTorsionForce) -> Term:
    values = _table(force, "Torsions", "p1 p2 p3 p4 k periodicity phase")
    return {"atoms": values[:, :4].astype(np.int64), "k": values[:, 4] / KJ_PER_KCAL, "n": values[:, 5],
            "phase": np.degrees(values[:, 6])}


def _read_ryckaert_bellemans(force: openmm.RBTorsionForce) -> Term:
    """Powers of cos(phi - 180) as cosines of multiples: cos^2 x = (1 + cos 2x)/2, and so on to the fifth.

    The sum of our k (1 + cos(n phi - phase)) holds the constants of the cosines too; a term with n = 0, which is
    2 k, makes up the difference.
    """
    values = _table(force, "Torsions", "p1 p2 p3 p4 c0 c1 c2 c3 c4 c5")
    powers = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [1 / 2, 0, 1 / 2, 0, 0, 0], [0, 3 / 4, 0, 1 / 4, 0, 0],
                       [3 / 8, 0, 1 / 2, 0, 1 / 8, 0], [0, 5 / 8, 0, 5 / 16, 0, 1 / 16]])
    cosine = values[:, 4:] @ powers / KJ_PER_KCAL
    cosine[:, 0] = 0.5 * (cosine[:, 0] - cosine[:, 1:].sum(axis=1))
    n = np.tile(np.arange(6), len(values))
    term = {"atoms": np.repeat(values[:, :4].astype(np.int64), 6, axis=0), "k": cosine.ravel(), "n": n.astype(float),
            "phase": np.where(n % 2 == 1, 180.0, 0.0)}
    return {key: column[term["k"] != 0] for key, column in term.items()}


def _read_impropers(force: openmm.CustomTorsionForce) -> Term:
    """Any formula that is a multiple of k (theta - theta0)^2 around the circle."""
    names = [force.getPerTorsionParameterName(i) for i in range(force.getNumPerTorsionParameters())]
    complaint = f"the dihedral energy {force.getEnergyFunction()} has no place in a topology file"
    if sorted(names) != ["k", "theta0"]:
        raise BadInputError(complaint)
    probe = openmm.CustomTorsionForce(force.getEnergyFunction())
    for name in names:
        probe.addPerTorsionParameter(name)
    probe.addTorsion(0, 1, 2, 3, [0.0, 0.0])
    context = _probe_context(probe, 4)
    factors = []
    for theta0, theta in ((0.3, 0.8), (-1.0, 1.0), (3.0, -3.0)):
        probe.setTorsionParameters(0, 0, 1, 2, 3, [{"k": 1.0, "theta0": theta0}[name] for name in names])
        probe.updateParametersInContext(context)
        context.setPositions([[1, 0, 0], [0, 0, 0], [0, 0, 1], [np.cos(theta), np.sin(theta), 1]])
        distance = np.pi - abs(abs(theta - theta0) - np.pi)
        energy = context.getState(getEnergy=True).getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole)
        factors.append(energy / distance**2)
    # OpenMM writes pi with six decimals into some formulas: 1e-5 of the distance of 0.28 taken around the circle.
    if factors[0] == 0 or np.ptp(factors) > 1e-4 * abs(factors[0]):
        raise BadInputError(complaint)
    rows = [force.getTorsionParameters(i) for i in range(force.getNumTorsions())]
    return {"atoms": np.array([row[:4] for row in rows], dtype=np.int64).reshape(-1, 4),
            "k": np.array([row[4][names.index("k")] for row in rows]) * factors[0] / KJ_PER_KCAL,
            "psi0": np.degrees([row[4][names.index("theta0")] for row in rows])}


def _read_cmap(force: openmm.CMAPTorsionForce) -> tuple[Term, np.ndarray]:
    """Terms of five atoms, and the maps with phi as the slower index."""
    maps = [force.getMapParameters(i) for i in range(force.getNumMaps())]
    sizes = {size for size, _ in maps}
    if len(sizes) > 1:
        raise BadInputError("the CMAP terms have maps of different sizes, which a topology file cannot hold")
    energy = [np.array(values.value_in_unit(unit.kilocalorie_per_mole)).reshape(size, size).T.ravel()
              for size, values in maps]
    rows = [force.getTorsionParameters(i) for i in range(force.getNumTorsions())]
    atoms = np.array([row[1:] for row in rows], dtype=np.int64).reshape(-1, 8)
    if not np.array_equal(atoms[:, 1:4], atoms[:, 4:7]):
        raise BadInputError("a CMAP term couples dihedrals that do not follow each other along a chain: the engine has "
                            "no such term")
    return {"atoms": np.hstack([atoms[:, :4], atoms[:, 7:]]),
            "map": np.array([row[0] for row in rows], dtype=np.int64)}, np.array(energy) if maps else np.empty((0, 0))


def _read_nonbonded(force: openmm.NonbondedForce) -> tuple[np.ndarray, Term]:
    """(n, 3) charge, sigma, epsilon of the atoms, and the exceptions."""
    if force.getNumParticleParameterOffsets() or force.getNumExceptionParameterOffsets():
        raise BadInputError("the force field changes charges by parameters, which a topology file cannot hold")
    particle = _table(force, "Particles", "q sig eps") * [1, ANGSTROM_PER_NM, 1 / KJ_PER_KCAL]
    values = _table(force, "Exceptions", "p1 p2 q sig eps")
    return particle, {"atoms": np.sort(values[:, :2], axis=1).astype(np.int64), "charge_product": values[:, 2],
                      "sigma": values[:, 3] * ANGSTROM_PER_NM, "epsilon": values[:, 4] / KJ_PER_KCAL}


def _read_special_pairs(force: openmm.CustomNonbondedForce) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Kind of every atom, and c12 and c6 of every pair of kinds."""
    names = [force.getPerParticleParameterName(i) for i in range(force.getNumPerParticleParameters())]
    parameters = np.array([force.getParticleParameters(i) for i in range(force.getNumParticles())])
    kinds, member = np.unique(parameters.reshape(-1, len(names)), axis=0, return_inverse=True)
    i, j = np.triu_indices(len(kinds))
    probe = openmm.CustomNonbondedForce(force.getEnergyFunction())
    for name in names:
        probe.addPerParticleParameter(name)
    for k in range(force.getNumTabulatedFunctions()):
        probe.addTabulatedFunction(force.getTabulatedFunctionName(k), copy.deepcopy(force.getTabulatedFunction(k)))
    for k in range(force.getNumGlobalParameters()):
        probe.addGlobalParameter(force.getGlobalParameterName(k), force.getGlobalParameterDefaultValue(k))
    for pair in range(len(i)):
        probe.addParticle(kinds[i[pair]])
        probe.addParticle(kinds[j[pair]])
        probe.addInteractionGroup([2 * pair], [2 * pair + 1])
    c12, c6 = _coefficients(probe, len(i), force.getEnergyFunction())
    matrices = np.zeros((2, len(kinds), len(kinds)))
    matrices[:, i, j] = matrices[:, j, i] = c12, c6
    return member.ravel(), (matrices[0], matrices[1])


def _read_pairs14(force: openmm.CustomBondForce) -> Term:
    """Lennard-Jones terms between pairs."""
    names = [force.getPerBondParameterName(i) for i in range(force.getNumPerBondParameters())]
    rows = [force.getBondParameters(i) for i in range(force.getNumBonds())]
    atoms = np.sort(np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2), axis=1)
    kinds, member = np.unique(np.array([row[2] for row in rows]).reshape(-1, len(names)), axis=0, return_inverse=True)
    probe = openmm.CustomBondForce(force.getEnergyFunction())
    for name in names:
        probe.addPerBondParameter(name)
    for k, values in enumerate(kinds):
        probe.addBond(2 * k, 2 * k + 1, values)
    c12, c6 = _coefficients(probe, len(kinds), force.getEnergyFunction())
    acts = c6 != 0
    sigma6 = np.divide(c12, c6, out=np.ones_like(c6), where=acts)
    if (c12[~acts] != 0).any():
        raise BadInputError("a 1-4 pair has repulsion without attraction, which a topology file cannot hold")
    epsilon = np.where(acts, c6 / (4 * sigma6), 0.0)
    return {"atoms": atoms, "sigma": (sigma6 ** (1 / 6))[member.ravel()], "epsilon": epsilon[member.ravel()]}


_READERS: tuple[tuple[type, Callable[[openmm.Force], Term], str], ...] = (
    (openmm.HarmonicBondForce, _read_bonds, "bond"),
    (openmm.HarmonicAngleForce, _read_angles, "angle"),
    (openmm.PeriodicTorsionForce, _read_dihedrals, "dihedral"),
    (openmm.RBTorsionForce, _read_ryckaert_bellemans, "dihedral"),
    (openmm.CustomTorsionForce, _read_impropers, "improper"),
    (openmm.CustomBondForce, _read_pairs14, "pair14"),
)


def _with_lennard_jones(pair: Term, pair14: Term) -> Term:
    """Put the Lennard-Jones parameters of 1-4 pairs, where these are a force of their own, into the excluded pairs."""
    pair = {key: column.copy() for key, column in pair.items()}
    place = {tuple(atoms): k for k, atoms in enumerate(pair["atoms"].tolist())}
    where = np.array([place.get(tuple(atoms), -1) for atoms in pair14["atoms"].tolist()], dtype=np.int64)
    if (where < 0).any() or len(np.unique(where)) < len(where) or (pair["epsilon"][where] != 0).any():
        raise BadInputError("the force field gives a pair of atoms Lennard-Jones terms twice, or a 1-4 term without "
                            "excluding it, which a topology file cannot hold")
    pair["sigma"][where], pair["epsilon"][where] = pair14["sigma"], pair14["epsilon"]
    return pair


def _coefficients(probe: openmm.Force, n_pairs: int, formula: str) -> tuple[np.ndarray, np.ndarray]:
    """c12 and c6 (our units) of pairs of particles (2k, 2k+1), from the forces at some distances."""
    if n_pairs == 0:
        return np.empty(0), np.empty(0)
    context = _probe_context(probe, 2 * n_pairs)
    slopes = []
    for r in _PROBE_DISTANCES:
        position = np.zeros((2 * n_pairs, 3))
        position[1::2, 0] = r
        context.setPositions(position)
        force = context.getState(getForces=True).getForces(asNumpy=True)
        slopes.append(np.asarray(force.value_in_unit(unit.kilojoule_per_mole / unit.nanometer))[1::2, 0])
    row = [np.array([12 / r**13, -6 / r**7]) for r in _PROBE_DISTANCES]
    c12, c6 = np.linalg.solve(np.array(row[:2]), np.array(slopes[:2]))
    expected = row[2][0] * c12 + row[2][1] * c6
    scale = np.abs(row[2][0] * c12) + np.abs(row[2][1] * c6)
    if (np.abs(expected - slopes[2]) > 1e-6 * scale).any():
        raise BadInputError(f"the pair energy {formula} is not of the form c12/r^12 - c6/r^6: the engine has no such "
                            "term")
    # What is left of a coefficient of zero is rounding.
    c12 = np.where(np.abs(row[0][0] * c12) < 1e-12 * np.abs(slopes[0]), 0.0, c12)
    c6 = np.where(np.abs(row[1][1] * c6) < 1e-12 * np.abs(slopes[1]), 0.0, c6)
    return c12 * _TO_C12, c6 * _TO_C6


def _probe_context(force: openmm.Force, n_particles: int) -> openmm.Context:
    """A context of OpenMM's Reference platform, which calculates in double precision, with one force."""
    system = openmm.System()
    for _ in range(n_particles):
        system.addParticle(1.0)
    system.addForce(force)
    return openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
