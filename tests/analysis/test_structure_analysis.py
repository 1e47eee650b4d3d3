"""Faults that are planted on a nucleosome, in any box, are found in their frames and nowhere else."""

import numpy as np
import pytest
from MDAnalysis.lib.mdamath import triclinic_vectors
from support.placed_nucleosomes import place_nucleosomes
from support.universes import universe_of

from chromabuild.analysis.structure_analysis import KINDS, StructureAnalysis
from chromabuild.analysis.tables import structure_tables
from chromabuild.base.errors import BadInputError


@pytest.mark.parametrize("box", [None, [170, 170, 170, 90, 90, 90], [190, 190, 190, 60, 60, 90]])
def test_planted_faults_are_found(box):
    solute = place_nucleosomes([(np.eye(3), np.zeros(3))])
    universe = universe_of(solute)

    def atoms(segment, residue, names):
        chosen = universe.select_atoms(f"segid {segment} and resid {residue}")
        return [chosen.select_atoms(f"name {name}").indices[0] for name in names.split()]

    at = solute.position
    pierced, mirrored, cis = (at.copy() for _ in range(3))
    ring = at[atoms("A000", 67, "CG CD1 CE1 CZ CE2 CD2")].astype(float)  # a phenylalanine of H3
    normal = np.cross(ring[0] - ring[1], ring[2] - ring[1])
    normal /= np.linalg.norm(normal)
    pierced[atoms("A000", 4, "CE NZ")] = ring.mean(axis=0) + 0.7 * np.stack([normal, -normal])  # lysine 4 of the tail
    alanine = atoms("A000", 47, "CB HA")
    mirrored[alanine] = at[alanine[::-1]]
    after = atoms("A000", 48, "H CA")  # a peptide's hydrogen is cis to the carbon before it
    cis[after] = at[after[::-1]]
    frames = np.stack([at, pierced, mirrored, cis]).astype(float)
    if box is not None:
        shift = np.random.default_rng(5).integers(-1, 2, frames.shape)
        shift[0] = 0
        frames += shift @ triclinic_vectors(box)
    analysis = StructureAnalysis(universe_of(solute, frames, box)).run()
    found = analysis.results.counts - analysis.results.counts[0]
    assert (analysis.results.counts[0, :4] == 0).all()
    # The bonds that the lysine's end drags across the fold pierce rings, too.
    assert found[1, 0] >= 1 and (found[1, 1:] == 0).all()
    assert found[2].tolist() == [0, 0, 1, 0, 0] and found[3, 3] == 1
    tables, first = structure_tables(analysis, np.arange(4.0))
    rows = [row for row in tables["structure_findings"].rows if row[4] == 0.25]
    assert first == 0 and len(tables["structure_series"].rows) == 4
    assert any("A000:LYS:4:CE A000:LYS:4:NZ" in row[1] and "A000:PHE:67:CG" in row[1] for row in rows
               if row[0] == KINDS[0])
    assert (KINDS[2], "A000:ALA:47:CA", "2", "2", 0.25) in rows


def test_water_alone_has_no_structure():
    import MDAnalysis

    water = MDAnalysis.Universe.empty(3, 1, atom_resindex=[0, 0, 0], trajectory=True)
    water.add_TopologyAttr("names", ["O", "H1", "H2"])
    water.add_TopologyAttr("resnames", ["HOH"])
    with pytest.raises(BadInputError, match="the file holds neither protein nor DNA"):
        StructureAnalysis(water, "the file")
