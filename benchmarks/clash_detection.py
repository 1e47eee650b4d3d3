"""Clash detection beside the neighbour searches of SciPy, MDAnalysis, gemmi and Biopython: time, and the same pairs.

Two clouds: sparse, forty dense clumps in a box mostly empty (chromatin in its bounding box), and dense, one filled box;
atoms keep at least 1.35 angstrom from each other but for 500 planted pairs, in random order. Programs take turns within
each round; the median of process CPU time (all threads) is shown, and the ratio to ours in the same round. Every
program's pairs are compared with ours; a peer that works in float32 may differ in pairs within 1e-5 angstrom of the
threshold.

The physical limit: positions are read twice and written once sorted, 12 + 24 + 12 + 4 bytes an atom; at the 10 GB/s
that one core of a server reads, about 200 million atoms a second. Peers that are not installed are left out.
"""

import importlib.util
import sys
import time

import numpy as np
from common.command import Benchmark
from common.results import ratios, spread
from scipy.spatial import cKDTree

from chromabuild.sterics.detect import close_pairs

THRESHOLD = 0.9


def cloud(n, clumps, seed=1):
    """(n, 3) float32: jittered lattices of 0.1 atoms per cubic angstrom, shuffled, with 500 planted close pairs."""
    random = np.random.default_rng(seed)
    side = int(np.ceil((n / clumps) ** (1 / 3)))
    lattice = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) * 2.15
    edge = (n * 100.0) ** (1 / 3) if clumps > 1 else 0.0
    grid = np.arange(int(np.ceil(clumps ** (1 / 3))))
    corner = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1).reshape(-1, 3)[:clumps] * max(
        edge / len(grid), side * 2.15 + 5.0)
    position = (corner[:, None] + lattice[None]).reshape(-1, 3)[:n]
    position = position + random.uniform(-0.4, 0.4, position.shape)
    random.shuffle(position)
    position[:500] = position[500:1000] + 0.3
    return position.astype(np.float32)


def ours(position, threads):
    return close_pairs(position, THRESHOLD, threads=threads)[0]


def scipy_tree(position, threads):
    tree = cKDTree(position, balanced_tree=False, compact_nodes=False)
    return tree.query_pairs(THRESHOLD, output_type="ndarray")


def mdanalysis(position, threads):
    from MDAnalysis.lib.distances import self_capped_distance

    return self_capped_distance(position, THRESHOLD, method="pkdtree", return_distances=False)


def mdanalysis_grid(position, threads):
    """FastNS; its cells are as wide as the cutoff, so that it takes minutes on the sparse cloud."""
    from MDAnalysis.lib.distances import self_capped_distance

    return self_capped_distance(position, THRESHOLD, method="nsgrid", return_distances=False)


def gemmi_search(position, threads):
    """ContactSearch on a model of one chain, one residue an atom; making that model is not timed by gemmi's users."""
    import gemmi

    structure = gemmi_search.structure
    search = gemmi.NeighborSearch(structure[0], gemmi.UnitCell(), THRESHOLD + 0.1).populate()
    contacts = gemmi.ContactSearch(THRESHOLD)
    contacts.ignore = gemmi.ContactSearch.Ignore.Nothing
    return np.array([[c.partner1.atom.serial, c.partner2.atom.serial] for c in contacts.find_contacts(search)])


def gemmi_structure(position):
    import gemmi

    chain = gemmi.Chain("A")
    for k, (x, y, z) in enumerate(position.tolist()):
        residue = gemmi.Residue()
        residue.name, residue.seqid = "AR", gemmi.SeqId(str(k))
        atom = gemmi.Atom()
        atom.name, atom.element, atom.serial, atom.pos = "AR", gemmi.Element("Ar"), k, gemmi.Position(x, y, z)
        residue.add_atom(atom)
        chain.add_residue(residue)
    model = gemmi.Model("1")
    model.add_chain(chain)
    structure = gemmi.Structure()
    structure.add_model(model)
    return structure


def biopython(position, threads):
    from Bio.PDB.kdtrees import KDTree

    return np.array([[n.index1, n.index2] for n in KDTree(position.astype(np.float64), 10).neighbor_search(THRESHOLD)])


PROGRAMS = {"chromabuild": ("chromabuild", ours), "SciPy cKDTree": ("scipy", scipy_tree),
            "MDAnalysis pkdtree": ("MDAnalysis", mdanalysis), "MDAnalysis FastNS": ("MDAnalysis", mdanalysis_grid),
            "gemmi": ("gemmi", gemmi_search), "Biopython": ("Bio", biopython)}
"""By name the package that is needed, and the search."""


def sorted_pairs(pairs):
    pairs = np.unique(np.sort(np.asarray(pairs).reshape(-1, 2), axis=1), axis=0)
    return pairs[pairs[:, 0] != pairs[:, 1]]


def agreement(position, one, other):
    """Pairs that only one of two programs found, and how far from the threshold the farthest of them is."""
    a, b = (set(map(tuple, pairs.tolist())) for pairs in (one, other))
    different = np.array(sorted(a ^ b)).reshape(-1, 2)
    if not len(different):
        return "same pairs"
    wide = position.astype(np.float64)
    d = np.linalg.norm(wide[different[:, 0]] - wide[different[:, 1]], axis=1)
    return f"{len(different)} differ, at {np.abs(d - THRESHOLD).max():.1e} A from the threshold"


def main() -> None:
    """Time all programs on both clouds."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--atoms", type=int, default=1_000_000)
    add("--rounds", type=int, default=5)
    add("--threads", type=int, default=1)
    given = benchmark.start(quick={"atoms": 20_000, "rounds": 1},
                            packages=("scipy", "MDAnalysis", "gemmi", "biopython"))
    there = {}
    for name, (package, run) in PROGRAMS.items():
        if importlib.util.find_spec(package):
            there[name] = run
        else:
            print(f"{name} is left out: pip install {package}", file=sys.stderr)
    table = benchmark.table("detection", f"Detection of pairs closer than {THRESHOLD} Å among {given.atoms:,} atoms "
                            f"in random order, {given.threads} thread(s)", cloud="", program="",
                            **{"CPU time, s": ".3f", "million atoms/s": ".2f", "time / chromabuild": ".1f",
                               "pairs": ""})
    for cloud_name, clumps in (("sparse", 40), ("dense", 1)):
        position = cloud(given.atoms, clumps)
        # FastNS has cells as wide as the cutoff and takes minutes on the sparse cloud.
        programs = {name: run for name, run in there.items() if not (run is mdanalysis_grid and clumps > 1)}
        if "gemmi" in programs:
            gemmi_search.structure = gemmi_structure(position)
        times = {name: [] for name in programs}
        found = {}
        for _ in range(given.rounds):
            for name, run in programs.items():
                begin = time.process_time()
                found[name] = run(position, given.threads)
                times[name].append(time.process_time() - begin)
        mine = sorted_pairs(found["chromabuild"])
        for name, spent in times.items():
            table.row(cloud_name, name, spread(spent), given.atoms / spread(spent)["median"] / 1e6,
                      ratios(spent, times["chromabuild"]), agreement(position, mine, sorted_pairs(found[name])))
    benchmark.finish()


if __name__ == "__main__":
    main()
