"""Ions around DNA: planted places, brute-force distances in boxes, uniform solutions, known residence times."""

import numpy as np
import pytest
from MDAnalysis.lib.distances import distance_array
from support.solvated_dna import solvated
from support.universes import built_dna, universe_of

from chromabuild.analysis.solvent import SHELL, SITES, WATER, concentration, nearest_atoms, residence, shells
from chromabuild.analysis.solvent_analysis import SolventAnalysis
from chromabuild.base.errors import BadInputError
from chromabuild.dna.steps import rebuild


@pytest.mark.parametrize("box", [[40, 45, 50, 90, 90, 90], [50, 50, 50, 60, 60, 90], [44, 44, 60, 90, 90, 120]])
def test_distances_are_those_of_all_images(box):
    rng = np.random.default_rng(2)
    points, atoms = rng.uniform(-60, 90, (300, 3)), rng.uniform(-10, 60, (40, 3))
    distance, which = nearest_atoms(points, atoms, np.array(box, float), 15.0)
    judged = distance_array(points.astype(np.float32), atoms.astype(np.float32), np.array(box, np.float32))
    near = judged.min(axis=1) < 15 - 1e-3
    assert np.allclose(distance[near], judged.min(axis=1)[near], atol=1e-4)  # single precision
    assert np.array_equal(which[near], judged.argmin(axis=1)[near])
    assert np.isinf(distance[judged.min(axis=1) > 15 + 1e-3]).all()


def test_planted_ions_are_counted_at_their_sites():
    box = [60, 60, 80, 90, 90, 90]
    _, dna = solvated(["MG"], 0, [np.zeros((1, 3))], box)
    residues = dna.residues

    def beside(residue, name, apart):
        """Outward from the base, away from its own atoms."""
        atoms = residues[residue].atoms
        at = atoms.select_atoms(f"name {name}").positions[0]
        outward = at - atoms.select_atoms("name N1 C2 N3 C4 C5 C6").positions.mean(axis=0)
        return at + apart * outward / np.linalg.norm(outward)

    at_o6, at_o2 = beside(0, "O6", 2.5), beside(3, "O2", 3.0)
    phosphate = residues[5].atoms
    p, op1 = (phosphate.select_atoms(f"name {name}").positions[0] for name in ("P", "OP1"))
    at_op1 = op1 + 4.5 * (op1 - p) / np.linalg.norm(op1 - p)
    far = np.array([29.0, 29.0, 39.0])
    frames = [[at_o6, at_o2, at_op1, far], [far, far, far, far]]
    universe, _ = solvated(["MG", "NA", "NA", "CL"], 0, frames, box)
    found = SolventAnalysis(universe).run()
    assert found.solvent.kinds == ["Cl-", "Mg2+", "Na+"]
    sites = {(kind, site): found.results.at_site[0, k, s].tolist() for k, kind in enumerate(found.solvent.kinds)
             for s, site in enumerate(SITES)}
    assert sites["Mg2+", "major groove"] == [1, 1] and sites["Na+", "minor groove"] == [1, 1]
    assert sites["Na+", "phosphate"] == [1, 0] and sum(map(sum, sites.values())) == 5
    assert found.results.bound.tolist() == [[True, True, True, False], [False] * 4]
    near = found.results.ions[0, 1, :, int(2.5 / SHELL) - 1:int(2.5 / SHELL) + 1].sum(axis=1)
    assert near.tolist() == [0, 0, 1, 0] and SITES[2] == "major groove"


def test_a_uniform_solution_has_the_same_concentration_everywhere():
    box, ions, waters = [60, 60, 80, 90, 90, 90], 200, 6000
    frames = np.random.default_rng(3).uniform(0, 1, (10, ions + waters, 3)) * box[:3]
    found = SolventAnalysis(solvated(["K"] * ions, waters, frames, box)[0]).run().results
    everywhere = WATER * ions / waters
    by_site, water_by_site = found.ions[:, 0].sum(axis=0), found.water.sum(axis=0)
    numbers = by_site.sum(axis=0)
    molar, known = concentration(numbers, water_by_site.sum(axis=0)), numbers > 20
    # Counts scatter by their root; five of that in 40 shells, and at sites (few fit into the minor groove).
    assert (np.abs(molar / everywhere - 1)[known] < 5 / np.sqrt(numbers[known])).all() and known.sum() > 20
    counts = by_site.sum(axis=1)
    at_sites, known = concentration(counts, water_by_site.sum(axis=1)), counts > 20
    assert (np.abs(at_sites / everywhere - 1)[known] < 5 / np.sqrt(counts[known])).all() and known.sum() == 3
    assert np.isnan(concentration(np.array([1]), np.array([0]))).all()
    assert shells(np.array([0.1, 0.6, 0.7, np.inf])).tolist()[:3] == [1, 2, 0]


def test_residence_time_of_a_known_process():
    """Two states left at random: mean residence 1 / rate, also where no visit is seen from end to end."""
    rng, rate, spacing = np.random.default_rng(4), 0.02, 2.0
    bound = np.empty((3000, 60), bool)
    bound[0] = True
    for k in range(1, len(bound)):
        leaving, coming = rng.random(60) < rate, rng.random(60) < 0.05
        bound[k] = np.where(bound[k - 1], ~leaving, coming)
    found = residence(bound, spacing)
    assert abs(found.time - spacing / rate) < 4 * found.error and found.error < 0.03 * found.time
    short = [residence(bound[k:k + 20], spacing) for k in range(0, 3000, 20)]
    pooled = sum(one.time * one.departures for one in short if one.departures) / sum(one.departures for one in short)
    assert pooled == pytest.approx(spacing / rate, rel=0.1)
    assert np.isnan(residence(np.ones((5, 2), bool), 1.0).time)


def test_no_ions_are_told():
    steps = np.tile([0.0, 0.0, 3.4, 0.0, 0.0, 36.0], (11, 1))
    with pytest.raises(BadInputError, match="the file holds no ions"):
        SolventAnalysis(universe_of(built_dna("GATTACAGCCTG", *rebuild(steps))), whose="the file")
