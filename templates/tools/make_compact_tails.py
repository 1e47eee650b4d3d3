"""Write histone_tails_compact.h5: histone tails that lie on their own nucleosome.

    python templates/tools/make_compact_tails.py [--seed 3] [--ends-of-h2b RESIDUES]

In the crystal 1KX5 the tails reach 30-60 angstrom out of the particle, between its neighbours in the lattice. In
solution these chains of lysine and arginine lie on DNA. Every tail is grown again from its root by a beam search: each
partial chain is continued by many draws of (phi, psi) from the allowed Ramachandran regions and of side-chain
rotamers; draws that touch anything are dropped; those kept are the best by the energy of their charges in the
Debye-Hueckel field of DNA and histones and by how far they reach beyond the particle. Bond lengths, angles and omega
are the crystal's.

Bases of other sequences are avoided as far as possible, each base pair being A, C, G and T in one of four, so that the
tails fit most sequences; the straight continuation of DNA at both ends is kept free for linkers. Run it again after
make_nucleosome.py. With --ends-of-h2b the file's tails stay, and only so many residues at the ends of H2B are grown.
"""

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path

import h5py
import numpy as np
from scipy.ndimage import map_coordinates
from scipy.spatial import cKDTree

from chromabuild.build.duplex import build_dna
from chromabuild.clash.tails import GrowthUnit, Tail, find_tails, growth_unit
from chromabuild.dna.sequence import base_index
from chromabuild.molecule.solute import Solute
from chromabuild.nucleosome.octamer import octamer
from chromabuild.nucleosome.peptide import GLYCINE_REGIONS, REGIONS
from chromabuild.sterics import reference
from chromabuild.sterics.atoms import CARBON, HYDROGEN, NITROGEN, OXYGEN, SULFUR, Atoms
from chromabuild.sterics.detect import bonded_to
from chromabuild.sterics.scene import Scene
from chromabuild.sterics.torsions import STAGGERED, Torsion, library_torsions

BEAMS = 64
TRIALS = 900  # of each partial chain
CHECKED = 1500  # best trials looked at exactly in one go
SIBLINGS = 5  # of one partial chain that may be kept
NEIGHBOURS = 3  # kept chains that may end in the same cube of 2.5 angstrom
NOISE = 0.5  # kT; the kept chains stay different

# Smallest distances (angstrom) between carbon-like, polar, hydrogen on carbon, polar hydrogen.
CONTACT = np.array([[3.3, 3.2, 2.5, 2.3], [3.2, 2.8, 2.4, 1.8], [2.5, 2.4, 2.1, 2.0], [2.3, 1.8, 2.0, 2.0]])
ALLOWED = (0.2, 0.4, 0.7, 1.0, 1.3)  # angstrom below these; the next only when too few ways are found
FEW = 16
TIGHT_PENALTY = 20.0  # kT per angstrom^2 below the first of ALLOWED
GRID = 0.5  # angstrom
GRID_ERROR = 0.35  # angstrom, of the distance at the nearest grid point
FIELD_GRID = 2.0

RADIUS, HALF_HEIGHT = 53.0, 29.0  # angstrom: beyond these a tail pays for its reach
BASE_PENALTY = 5.0  # kT per angstrom^2 by which a contact with a base of another sequence is too short
REACH_PENALTY = 0.06  # kT per angstrom^2 and heavy atom
LINKER_LENGTH, LINKER_RADIUS = 60.0, 15.0  # angstrom, kept free
BJERRUM, SCREENING = 7.1, 8.0  # angstrom: water at 300 K, 0.15 mol/L
CLOSEST_CHARGES = 4.5  # angstrom: nearer charges attract no more
CHARGES = {"LYS": ("NZ", 1.0), "ARG": ("CZ", 1.0), "ASP": ("CG", -1.0), "GLU": ("CD", -1.0)}
ORDER = ("H2A", "H4", "H2B", "H3")  # the longest last


def as_solute(position: np.ndarray, template: np.ndarray, number: np.ndarray, first: np.ndarray,
              names: list[str]) -> Solute:
    """Chains as one Solute with a single segment."""
    return Solute(position, template, number, np.zeros(len(template), np.uint16), ["CORE"], ["A"], first, names,
                  np.zeros(len(names), np.int32))


def contact_class(atoms: Atoms) -> np.ndarray:
    """(n,) row of each atom in CONTACT."""
    polar = (NITROGEN, OXYGEN, SULFUR)
    result = np.where(np.isin(atoms.element, polar[:2]), 1, 0)
    hydrogen = atoms.element == HYDROGEN
    return np.where(hydrogen, np.where(bonded_to(atoms, polar), 3, 2), result)


def charge_sites(atoms: Atoms, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Atoms that carry the formal charges of protein chains, and their charges."""
    place = {(r, n): k for k, (r, n) in enumerate(zip(atoms.residue.tolist(), atoms.name.tolist(), strict=True))}
    sites = [(place[r, CHARGES[name[-3:]][0]], CHARGES[name[-3:]][1])
             for r, name in enumerate(atoms.residue_name) if name[-3:] in CHARGES]
    for start, end in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
        sites += [(place[start, "N"], 1.0), (place[end - 1, "C"], -1.0)]
    where, charge = zip(*sorted(sites), strict=True)
    return np.array(where), np.array(charge)


class Obstacles:
    """Everything that stands still: clearance on a grid, and exactly; the electric potential."""

    def __init__(self, lower: np.ndarray, upper: np.ndarray) -> None:
        self.lower = lower
        self.clearance = np.full((4, *np.ceil((upper - lower) / GRID).astype(int) + 1), 1.0, dtype=np.float32)
        axes = [np.arange(low, high + FIELD_GRID, FIELD_GRID) for low, high in zip(lower, upper, strict=True)]
        self.nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        self.potential = np.zeros(self.nodes.shape[:3])
        self.points = [np.empty((0, 3))] * 4
        self.trees: list[cKDTree] = []

    def add(self, position: np.ndarray, kind: np.ndarray) -> None:
        """Atoms (n, 3) of the classes (n,)."""
        cell = np.rint((position - self.lower) / GRID).astype(int)
        shape = np.array(self.clearance.shape[1:])
        offset = position - self.lower - cell * GRID
        reach = CONTACT.max() + 0.5
        steps = np.arange(-int(reach / GRID) - 1, int(reach / GRID) + 2)
        for step in np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3):
            if np.linalg.norm(step * GRID) > reach:
                continue
            node = cell + step
            inside = ((node >= 0) & (node < shape)).all(axis=1)
            distance = np.linalg.norm(step * GRID - offset[inside], axis=1)
            flat = np.ravel_multi_index(node[inside].T, shape)
            for probe in range(4):
                np.minimum.at(self.clearance[probe].reshape(-1), flat,
                              (distance - CONTACT[probe][kind[inside]]).astype(np.float32))
        self.points = [np.concatenate([old, position[kind == k]]) for k, old in enumerate(self.points)]
        self.trees = [cKDTree(points) for points in self.points]

    def add_charges(self, position: np.ndarray, charge: np.ndarray) -> None:
        """Debye-Hueckel potential, kT per elementary charge."""
        for place, q in zip(position, charge, strict=True):
            distance = np.maximum(np.linalg.norm(self.nodes - place, axis=-1), CLOSEST_CHARGES)
            self.potential += q * BJERRUM * np.exp(-distance / SCREENING) / distance

    def near_clearance(self, position: np.ndarray, probe: int) -> np.ndarray:
        """Clearance at the nearest grid points."""
        cell = np.rint((position - self.lower) / GRID).astype(int)
        cell = np.clip(cell, 0, np.array(self.clearance.shape[1:]) - 1)
        return self.clearance[probe][tuple(np.moveaxis(cell, -1, 0))]

    def exact_clearance(self, position: np.ndarray, kind: np.ndarray) -> np.ndarray:
        """(k,) smallest distance beyond CONTACT of (k, m, 3) atoms of classes (m,)."""
        result = np.full(position.shape[:2], 1.0)
        for k, tree in enumerate(self.trees):
            distance = tree.query(position, distance_upper_bound=CONTACT.max() + 0.1)[0]
            result = np.minimum(result, distance - CONTACT[kind, k])
        return result.min(axis=1)

    def potential_at(self, position: np.ndarray) -> np.ndarray:
        """Potential at (..., 3)."""
        place = np.moveaxis((position - self.lower) / FIELD_GRID, -1, 0)
        return map_coordinates(self.potential, place, order=1, mode="nearest")


@dataclass
class Linker:
    """A straight piece of DNA to keep free."""

    start: np.ndarray
    direction: np.ndarray

    def intrusion(self, position: np.ndarray) -> np.ndarray:
        """How deep points lie in it, angstrom."""
        along = (position - self.start) @ self.direction
        across = np.linalg.norm(position - self.start - along[..., None] * self.direction, axis=-1)
        return np.where((along > -5) & (along < LINKER_LENGTH), np.clip(LINKER_RADIUS - across, 0, None), 0.0)


def rotated(points: np.ndarray, torsion: Torsion, axis: np.ndarray, angle: np.ndarray, atoms: np.ndarray) -> None:
    """Turn (t, m, 3) copies of ``atoms`` in place by (t,) angles about an axis given by two points."""
    turned = np.flatnonzero(np.isin(atoms, torsion.turned))
    unit = (axis[1] - axis[0]) / np.linalg.norm(axis[1] - axis[0])
    v = points[:, turned] - axis[1]
    cosine, sine = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
    along = (v @ unit)[..., None] * unit
    points[:, turned] = axis[1] + along + cosine * (v - along) + sine * np.cross(unit, v)


def frame_of(three: np.ndarray) -> np.ndarray:
    """(..., 3, 3) right-handed axes in columns from (..., 3, 3) points; the last point is the origin."""
    x = three[..., 1, :] - three[..., 2, :]
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    z = np.cross(x, three[..., 0, :] - three[..., 2, :])
    z = z / np.linalg.norm(z, axis=-1, keepdims=True)
    return np.stack([x, np.cross(z, x), z], axis=-1)


def draws(scene: Scene, unit: GrowthUnit, random: np.random.Generator) -> np.ndarray:
    """(t, k) torsion angles in degree; the first draw is the crystal's."""
    glycine = scene.atoms.residue_name[unit.residue].endswith("GLY")
    regions = np.array(GLYCINE_REGIONS if glycine else REGIONS)
    region = regions[random.choice(len(regions), TRIALS, p=regions[:, 0] / regions[:, 0].sum())]
    wobble = random.uniform(-1.0, 1.0, (TRIALS, len(unit.torsions)))
    pick = random.random((TRIALS, len(unit.torsions)))
    keep = random.random(TRIALS) < 0.25
    now = reference.dihedrals(scene.position, np.array([t.quad for t in unit.torsions]))
    goal = np.empty((TRIALS, len(unit.torsions)))
    for k, (torsion, kind) in enumerate(zip(unit.torsions, unit.kinds, strict=True)):
        if kind != "chi":
            goal[:, k] = region[:, 1 if kind == "phi" else 2] + wobble[:, k] * region[:, 3]
        else:
            drawn = 360.0 * pick[:, k] if torsion.planar else (
                np.array(STAGGERED)[(3 * pick[:, k]).astype(int)] + 10.0 * wobble[:, k])
            goal[:, k] = np.where(keep, now[k], drawn)
    # The crystal shows the ways between the gyres: a quarter stays near it.
    goal[:TRIALS // 4] = now + 15.0 * wobble[:TRIALS // 4] * random.random((TRIALS // 4, 1))
    goal[0] = now
    return np.radians(goal - now)


def inner_clearance(scene: Scene, points: np.ndarray, atoms: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """(t,) clearance between the atoms of one unit."""
    p, q = np.triu_indices(len(atoms), 1)
    free = ~scene.graph.bonded(np.stack([atoms[p], atoms[q]], axis=1))
    p, q = p[free], q[free]
    if len(p) == 0:
        return np.ones(len(points))
    distance = np.linalg.norm(points[:, p] - points[:, q], axis=2)
    return (distance - CONTACT[kind[p], kind[q]]).min(axis=1)


def grow_tail(scene: Scene, tail: Tail, chi: dict[int, list[Torsion]], kind: np.ndarray, charge: dict[int, float],
              obstacles: Obstacles, other_bases: Obstacles, linkers: list[Linker], anchor: np.ndarray,
              seed: int) -> tuple[float, float]:
    """Put a new tail into ``scene.position``; gives its energy in kT and its tightest contact.

    ``anchor`` are the atoms of the core that tails hang on: they are no obstacles, since some are bonded to the tail.
    """
    placed = anchor
    beams = scene.position[None, placed].copy()
    energy, tightest = np.zeros(1), np.full(1, 1.0)
    for residue in tail.residues:
        unit = growth_unit(scene, tail, residue, chi[residue])
        atoms = unit.scored
        random = np.random.Generator(np.random.Philox(key=np.array(
            [seed, (tail.molecule << 40) + residue], dtype=np.uint64)))
        angle = draws(scene, unit, random)
        points = np.repeat(scene.position[None, atoms], TRIALS, axis=0)
        # The outermost first: every axis is still where the crystal has it.
        for torsion, value in list(zip(unit.torsions, angle.T, strict=True))[::-1]:
            rotated(points, torsion, scene.position[list(torsion.quad[1:3])], value, atoms)
        inner = inner_clearance(scene, points, atoms, kind[atoms])
        three = list(unit.torsions[0].quad[:3])
        local = (points - scene.position[three[2]]) @ frame_of(scene.position[three])
        corner = beams[:, [int(np.flatnonzero(placed == a)[0]) for a in three]]
        axes = frame_of(corner)
        world = np.einsum("bij,tmj->btmi", axes, local) + corner[:, None, None, 2]
        n_beams = len(world)
        world = world.reshape(-1, len(atoms), 3)
        parent, trial = np.divmod(np.arange(len(world)), TRIALS)
        clearance = inner[trial].copy()
        score = np.zeros(len(world))
        for k in range(4):
            some = np.flatnonzero(kind[atoms] == k)
            if len(some):
                clearance = np.minimum(clearance, obstacles.near_clearance(world[:, some], k).min(axis=1) + GRID_ERROR)
                depth = np.clip(-other_bases.near_clearance(world[:, some], k) - GRID_ERROR, 0, None)
                score += BASE_PENALTY * (depth**2).sum(axis=1)
        heavy = kind[atoms] < 2
        place = world[:, heavy]
        beyond = np.stack([np.hypot(place[..., 0], place[..., 1]) - RADIUS, np.abs(place[..., 2]) - HALF_HEIGHT])
        score += REACH_PENALTY * (np.clip(beyond, 0, None) ** 2).sum(axis=(0, 2))
        for linker in linkers:
            score += 0.2 * (linker.intrusion(place) ** 2).sum(axis=1)
        for k, atom in enumerate(atoms.tolist()):
            if atom in charge:
                score += charge[atom] * obstacles.potential_at(world[:, k])
        total = energy[parent] + score
        rank = total + NOISE * random.gumbel(size=len(total))
        bonded = scene.graph.bonded(np.stack(np.meshgrid(atoms, placed, indexing="ij"), axis=-1).reshape(-1, 2))
        contact = np.where(bonded.reshape(len(atoms), -1), -10.0, CONTACT[kind[atoms][:, None], kind[placed][None]])
        chosen: list[int] = []
        chosen_clearance: list[float] = []
        siblings, cubes = np.zeros(n_beams, int), {}
        for allowed in ALLOWED:
            candidates = np.setdiff1d(np.flatnonzero(clearance > -allowed), chosen)
            candidates = candidates[np.argsort(rank[candidates], kind="stable")]
            for start in range(0, min(len(candidates), 8 * CHECKED), CHECKED):
                some = candidates[start:start + CHECKED]
                exact = np.minimum(inner[trial[some]], obstacles.exact_clearance(world[some], kind[atoms]))
                some, exact = some[exact > -allowed], exact[exact > -allowed]
                for k, candidate in enumerate(some.tolist()):
                    cube = tuple(np.rint(world[candidate, -1] / 2.5).astype(int))
                    mine = parent[candidate]
                    if siblings[mine] >= SIBLINGS * max(1, BEAMS // (2 * n_beams)) or cubes.get(cube, 0) >= NEIGHBOURS:
                        continue
                    distance = np.linalg.norm(world[candidate][:, None] - beams[mine][None], axis=-1)
                    own = float((distance - contact).min())
                    if own <= -allowed:
                        continue
                    siblings[mine] += 1
                    cubes[cube] = cubes.get(cube, 0) + 1
                    chosen.append(candidate)
                    chosen_clearance.append(min(own, exact[k]))
                    if len(chosen) == BEAMS:
                        break
                if len(chosen) == BEAMS:
                    break
            if len(chosen) >= FEW:
                break
        if not chosen:
            raise SystemExit(f"no way on at {scene.atoms.residue_label[residue]}: choose another seed")
        pick = np.array(chosen)
        beams = np.concatenate([beams[parent[pick]], world[pick]], axis=1)
        tightest = np.minimum(tightest[parent[pick]], chosen_clearance)
        placed = np.concatenate([placed, atoms])
        tight = np.clip(-np.array(chosen_clearance) - ALLOWED[0], 0, None)
        energy = total[pick] + TIGHT_PENALTY * tight**2
    best = int(np.argmin(energy))
    scene.position[placed[len(anchor):]] = beams[best, len(anchor):]
    return float(energy[best]), float(tightest[best])


def hung_on(crystal: np.ndarray, compact: np.ndarray, atoms: np.ndarray, three: list[int]) -> np.ndarray:
    """Where ``atoms`` are when they follow three atoms from the crystal's conformation to the compact one; (n, 3)."""
    before, after = (frame_of(position[three]) for position in (crystal, compact))
    return compact[three[2]] + (crystal[atoms] - crystal[three[2]]) @ before @ after.T


def main(seed: int, ends: int) -> None:
    """Grow all tails, or so many residues at the ends of H2B, and write them beside this script."""
    folder = Path(__file__).resolve().parents[1]
    core = octamer("crystal")
    first = np.concatenate([[0], np.cumsum(np.bincount(core.residue_chain))])
    solute = as_solute(core.position.copy(), core.residue_template, core.residue_number, first, list(core.histone))
    scene = Scene(Atoms.from_solute(solute), 0.9, 1)
    kind, residue = contact_class(scene.atoms), scene.atoms.residue
    sites, charges = charge_sites(scene.atoms, first)
    tails = sorted(find_tails(scene, solute.molecule_name, first, core.residue_number),
                   key=lambda tail: ORDER.index(core.histone[tail.molecule]))
    stored = np.isin(residue, [r for tail in tails for r in tail.residues])
    if ends:
        compact = octamer("compact").position
        tails = [replace(tail, residues=tail.residues[-ends:]) for tail in tails
                 if core.histone[tail.molecule] == "H2B"]
        for tail in tails:
            atoms = np.flatnonzero(np.isin(residue, tail.residues))
            three = [int(np.flatnonzero((residue == tail.residues[0] - tail.outward) & (scene.atoms.name == name))[0])
                     for name in ("C", "CA", "N")]
            compact[atoms] = hung_on(core.position, compact, atoms, three)
        scene.position[:] = compact
    in_tail = np.isin(residue, [r for tail in tails for r in tail.residues])
    crystal = scene.position.copy()

    corners = np.array([-80.0, -80, -55]), np.array([80.0, 80, 55])
    obstacles, other_bases = Obstacles(*corners), Obstacles(*corners)
    path = json.loads((folder / "nucleosome_path_1kx5.json").read_text())
    origin, frame = np.array(path["origin"]), np.array(path["frame"]).reshape(-1, 3, 3)
    for shift in range(4):
        bases = (base_index(path["sequence"]) + shift) % 4
        position, template, _ = build_dna(bases, origin, frame)
        dna = Atoms.from_solute(as_solute(position, template, np.ones(len(template), np.int32),
                                          np.array([0, len(bases), 2 * len(bases)]), ["DNA-I", "DNA-J"]))
        (other_bases if shift else obstacles).add(position, contact_class(dna))
        if shift == 0:
            phosphates = position[dna.name == "P"]
            obstacles.add_charges(phosphates, np.full(len(phosphates), -1.0))
    linkers = [Linker(origin[end], sign * frame[end, :, 2]) for end, sign in ((0, -1.0), (-1, 1.0))]

    anchor = np.zeros(len(in_tail), dtype=bool)
    for tail in tails:
        root = tail.residues[0]
        own = np.isin(residue, [root, root - tail.outward, root - 2 * tail.outward])
        own[list(growth_unit(scene, tail, root, []).torsions[0].turned)] = False
        anchor |= own
    still = np.flatnonzero(~in_tail & ~anchor)
    obstacles.add(crystal[still], kind[still])
    folded = ~np.isin(sites, np.flatnonzero(in_tail))
    obstacles.add_charges(crystal[sites[folded]], charges[folded])
    charge = dict(zip(sites.tolist(), charges.tolist(), strict=True))
    for tail in tails:
        chi = {}
        for r in tail.residues:
            torsions = library_torsions()[core.residue_template[r]].chi
            chi[r] = [torsion.shifted(int(solute.residue_first_atom[r])) for torsion in torsions]
        energy, tightest = grow_tail(scene, tail, chi, kind, charge, obstacles, other_bases, linkers,
                                     np.flatnonzero(anchor), seed)
        mine = np.flatnonzero(np.isin(residue, tail.residues) & ~anchor)
        obstacles.add(scene.position[mine], kind[mine])
        carriers = np.intersect1d(mine, sites)
        obstacles.add_charges(scene.position[carriers], np.array([charge[a] for a in carriers.tolist()]))
        place = scene.position[mine]
        print(f"{core.chain[tail.molecule]} {core.histone[tail.molecule]} {len(tail.residues)} residues: "
              f"{energy:.1f} kT, closest contact {tightest:+.2f}, "
              f"radius {np.hypot(place[:, 0], place[:, 1]).max():.1f}, "
              f"height {np.abs(place[:, 2]).max():.1f}", flush=True)

    heavy = stored & (scene.atoms.element >= CARBON)
    with h5py.File(folder / "histone_tails_compact.h5", "w") as file:
        options = {"compression": "gzip", "shuffle": True}
        file.attrs["source"] = "make_compact_tails.py, from nucleosome_1kx5.h5 and nucleosome_path_1kx5.json"
        file.attrs["seed"] = seed
        # Rows of heavy_atom_position in nucleosome_1kx5.h5 that these positions replace.
        row = np.cumsum(scene.atoms.element != HYDROGEN) - 1
        file.create_dataset("heavy_atom", data=row[heavy].astype(np.int32), **options)
        file.create_dataset("position", data=np.rint(1000 * scene.position[heavy]).astype(np.int32), **options)
        file["position"].attrs["unit"] = "0.001 angstrom"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--ends-of-h2b", type=int, default=0, metavar="RESIDUES")
    given = parser.parse_args()
    main(given.seed, given.ends_of_h2b)
