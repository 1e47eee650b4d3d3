"""The stage `refine`: when the chain has it, what moves, what holds, and what is refused."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from support.command_line import result_of
from support.molecular_systems import make_solute
from support.solvated_example import SOLUTE
from support.spread_nucleosomes import one_nucleosome

import chromabuild as package
from chromabuild.base.errors import BadInputError
from chromabuild.base.progress import silent
from chromabuild.base.settings import validated
from chromabuild.build.beads import BASE, beads_of
from chromabuild.build.duplex import build_dna
from chromabuild.dna.helix import straight_path
from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.pipeline.chain import stage_named
from chromabuild.pipeline.export import export_scene
from chromabuild.pipeline.needs import disk_space, stage_memory
from chromabuild.pipeline.speeds import REFERENCE, refine_seconds
from chromabuild.pipeline.stages import Job
from chromabuild.pipeline.validation import check_beads
from chromabuild.simulate.bead_refinement import refinement_phases, water_with_salt
from chromabuild.simulate.energy_log import EnergyLog
from chromabuild.simulate.protocol import plan_phases

WELLS = {"AT": 16.731 / 4.184, "GC": 21.181 / 4.184}
"""Depths of the base pairs of 3SPN.2, kcal/mol."""


@pytest.mark.mpi
def test_the_chain_refines_a_solute_and_corrects_its_clashes(tmp_path):
    """The same residues come out, moved; clashes are corrected of what the stage made."""
    results = tmp_path / "results"
    results.mkdir()
    shutil.copy(SOLUTE, results / "solute.h5")
    (tmp_path / "locus.yaml").write_text(json.dumps({"refine": {
        "enabled": True, "minimise_steps": 200, "length": "2 ps"}}))
    summary = result_of("refine", cwd=tmp_path)["summary"]
    before, after = Solute.read(SOLUTE), Solute.read(results / "solute_refined.h5")
    assert np.array_equal(before.residue_template, after.residue_template)
    assert summary["beads"] == beads_of(before).n == 149
    assert summary["energy_after_kcal_per_mol"] < summary["energy_before_kcal_per_mol"]
    assert summary["dna_off_rms_angstrom"] < 1.0 and summary["proteins_off_rms_angstrom"] < 1.0
    assert 0.3 < np.sqrt(np.mean(np.sum((after.position - before.position) ** 2, axis=1))) < 6
    assert sorted(path.name for path in (results / "refine").iterdir()) == [
        "01-minimise.log", "02-warm.log", "03-move.log", "04-quench.log"]
    assert result_of("clash", cwd=tmp_path)["summary"]["pairs_after"] == 0
    taken = json.loads((results / "provenance.json").read_text())["stages"]["clash"]["provenance"]["inputs"]
    assert taken["solute"]["file"] == "solute_refined.h5"


@pytest.mark.mpi
def test_a_nucleosome_keeps_its_base_pairs_and_histones(tmp_path):
    """Ring nitrogens of each pair stay as near as a hydrogen bond allows, strands are whole, histones keep their shape;
    the same call on two threads gives the same bytes."""
    solute = one_nucleosome()

    (moved, summary), (again, _) = (
        package.refine_solute(solute, tmp_path / str(threads), threads=threads, length="0.5 ps", minimise_steps=100)
        for threads in (1, 2))
    assert np.array_equal(moved.position, again.position)
    assert summary["dna_off_rms_angstrom"] < 1.0 and summary["proteins_off_rms_angstrom"] < 1.0
    library, first = list(residue_library().values()), solute.residue_first_atom
    template = [library[k] for k in solute.residue_template]

    def at(residue: int, name: str) -> np.ndarray:
        return moved.position[first[residue] + template[residue].index[name]]

    ring = {"A": "N1", "G": "N1", "C": "N3", "T": "N3"}
    bonds = [np.linalg.norm(at(k, ring[template[k].base]) - at(353 - k, ring[template[353 - k].base]))
             for k in range(177)]
    assert np.max(bonds) < 3.5 and np.median(bonds) == pytest.approx(2.9, abs=0.2)
    joints = [np.linalg.norm(at(k, "O3'") - at(k + 1, "P")) for k in range(353) if k != 176]
    assert joints == pytest.approx(np.full(352, 1.61), abs=0.05)
    histones = slice(solute.molecule_first_atom[2], None, 100)
    assert pdist(moved.position[histones]) == pytest.approx(pdist(solute.position[histones]), abs=1e-3)


@pytest.mark.mpi
def test_a_duplex_holds_together_as_b_dna(tmp_path):
    """24 base pairs for 100 ps at 300 K: the temperature is that of the bath, pairs stay, the rise is that of B-DNA.

    Of 142 beads and 50 rows the mean temperature is known to 300 K sqrt(2/(3 142 * 20)), 20 rows being independent at
    a friction of 1/ps or more: 1 %; three times that is allowed. A molten duplex has no pairs; at 300 K each degree of
    freedom of a well takes about kT/2 of 4 to 5 kcal/mol.
    """
    sequence = np.random.default_rng(26).integers(0, 4, 24)
    position, template, _ = build_dna(sequence, *straight_path(24))
    names = [residue_names()[k] for k in template]
    solute = make_solute([names[:24], names[24:]], position)
    settings = package.Settings.model_validate({"simulate": {"temperature": 300.0}})
    moved, _ = package.refine_solute(solute, tmp_path, settings, threads=1, seed=3, length="100 ps",
                                     minimise_steps=500)
    log = EnergyLog.read(tmp_path / "03-move.log")
    half = len(log["STEP"]) // 2
    assert log["TEMPERATURE"][half:].mean() == pytest.approx(300.0, rel=0.03)
    wells = sum(WELLS["AT" if base in (0, 3) else "GC"] for base in sequence)
    assert -1.0 < log["BASE_PAIR"][half:].mean() / wells < -0.6
    beads = beads_of(moved)
    base = beads.place(moved.position)[beads.of_residue[:, BASE]]
    middle = 0.5 * (base[:24] + base[:23:-1])
    assert np.linalg.norm(middle[20] - middle[4]) / 16 == pytest.approx(3.3, abs=0.3)


def test_water_and_salt_are_those_of_the_model():
    """At 300 K and 150 mmol/L open3SPN2 screens charges over 7.6967 angstrom."""
    solvent = water_with_salt(300.0, 0.15)
    assert solvent.debye_length == pytest.approx(7.6967, rel=1e-4) and solvent.of_beads


def test_plans_count_the_stage():
    """A solute file more, memory and time."""
    with_it, without = (validated({}, {"refine.enabled": on}, "test") for on in (True, False))
    assert set(stage_memory(with_it, 1, 27000, 300000, 1, 1, 1)) - set(stage_memory(
        without, 1, 27000, 300000, 1, 1, 1)) == {"refine"}
    assert disk_space(with_it, 1, 27000, 300000, 0, 0, 1)["solute"] == pytest.approx(
        1.5 * disk_space(without, 1, 27000, 300000, 0, 0, 1)["solute"])
    phases = list(plan_phases(refinement_phases(with_it.refine, 300.0)))
    assert refine_seconds(27000, phases, 2, REFERENCE) < refine_seconds(27000, phases, 1, REFERENCE) < 60


def test_what_does_not_fit_is_refused(tmp_path):
    config = validated({}, {"output": str(tmp_path)}, "test")
    with pytest.raises(BadInputError, match="refine.enabled is false: set it to true"):
        stage_named("refine").run(Job(config, 1, silent, {}))
    with pytest.raises(BadInputError, match="refine.enabled does not go with locus.circular"):
        validated({}, {"refine.enabled": True, "locus.circular": True}, "test")
    with pytest.raises(BadInputError, match=r"would place rigid bodies of the scaffold, which refine.enabled moved"):
        export_scene(validated({}, {"refine.enabled": True}, "test"), tmp_path / "scene.zip")
    zinc = SimpleNamespace(protein=SimpleNamespace(residue_template=np.array([residue_names().index("ZN")])))
    with pytest.raises(BadInputError, match="refine.enabled does not go with ZN in a protein on DNA"):
        check_beads(SimpleNamespace(complexes=[zinc]))
