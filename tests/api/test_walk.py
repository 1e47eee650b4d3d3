"""One nucleosome from its files to dynamics, through the functions and as the chain makes it with the same settings."""

import random
import warnings

import numpy as np
import pytest

import chromabuild as cb
from chromabuild.base.errors import BadInputError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A locus of 167 bp, and its settings."""
    folder = tmp_path_factory.mktemp("one")
    sequence = "".join(random.Random(5).choices("ACGT", k=167))
    (folder / "locus.fa").write_text(f">chr1\n{sequence}\n")
    (folder / "nucleosomes.bed").write_text("chr1\t83\t84\n")
    (folder / "locus.yaml").write_text("seed: 3\nscaffold: {sweeps: 5}\nsolvate: {padding: 3.0}\n"
                                       "simulate: {protocol: demo}\n")
    return folder


@pytest.fixture(scope="module")
def chain(folder):
    """Results of the chain up to the force field, and what it told."""
    told = []
    results = cb.run_chain(folder / "locus.yaml", threads=2, until="topology",
                           progress=lambda phase, share=None: told.append((phase, share)))
    return results, told


@pytest.fixture(scope="module")
def walk(folder):
    """The same with the functions; positions and defaults of the settings file by name."""
    locus = cb.Locus.from_files(folder / "locus.fa", folder / "nucleosomes.bed")
    scaffold = cb.fold(locus, sweeps=5, seed=3, threads=2)
    solute = cb.build_solute(scaffold, seed=3)
    clean, report = cb.remove_clashes(solute, seed=3)
    shards = cb.add_solvent(clean, folder / "walk" / "shards", padding=3.0, seed=3)
    return locus, scaffold, solute, clean, report, shards, cb.assign_force_field(clean, shards)


def test_functions_give_what_the_chain_writes(chain, walk):
    results, _ = chain
    _, scaffold, solute, clean, report, shards, topology = walk
    assert np.array_equal(scaffold.origin, results.scaffold.origin)
    assert np.array_equal(scaffold.core_frame, results.scaffold.core_frame)
    assert np.array_equal(solute.position, results.solute.position)
    assert np.array_equal(clean.position, results.clean_solute.position)
    assert report.to_json() == results.clash_report.to_json() and report.fatal == 0
    assert shards.manifest == results.shards.manifest
    assert np.array_equal(shards.positions(), results.shards.positions())
    assert np.array_equal(topology.charges(), results.topology.charges())
    assert all(np.array_equal(topology.term("dihedral")[key], value)
               for key, value in results.topology.term("dihedral").items())
    assert solute.build_report.keys() <= results.record["stages"]["build"]["summary"].keys()


def test_progress_is_told_by_stage(chain):
    phases = [phase for phase, _ in chain[1]]
    assert phases[0] == "mesoscale scaffold" and phases[-1] == "force field"
    assert any(phase.startswith("force field: assembling") for phase in phases)
    assert all(share is None or 0 <= share <= 1 for _, share in chain[1])


def test_a_chain_that_is_up_to_date_is_not_run_again(folder, chain):
    told = []
    cb.run_chain(cb.Settings.read(folder / "locus.yaml"), until="topology",
                 progress=lambda phase, share=None: told.append(phase))
    assert len(told) == 5 and all(phase.endswith(": up to date") for phase in told)
    with pytest.raises(BadInputError, match="tea is not a stage: choose from scaffold, build"):
        cb.run_chain(folder / "locus.yaml", until="tea")


def test_results_show_themselves_in_a_notebook(chain, walk):
    for shown in (*walk[:4], walk[5], walk[6], chain[0]):
        assert "<table>" in shown._repr_html_()
    assert f"{walk[3].n_atoms:,}" in walk[3]._repr_html_()


@pytest.mark.mpi
def test_dynamics_and_their_files(walk, folder):
    shards, topology = walk[5:]
    told = []
    run = cb.run_dynamics(topology, shards, folder / "walk" / "md", phases=[
        {"name": "minimise", "kind": "minimise", "steps": 10},
        {"name": "dynamics", "steps": 4, "output_period": 2, "trajectory_period": 2}], threads=2,
        progress=lambda phase, share=None: told.append(share))
    assert run.energies["STEP"].tolist() == [0, 2, 4] and run.minimisation["STEP"][-1] == 10
    assert told[-1] == 1.0 and run.trajectory.is_file() and run.seconds_per_step["dynamics"] > 0
    assert cb.Run.read(folder / "walk" / "md") == run
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "simulated, ps" in run._repr_html_()


@pytest.mark.parametrize(("call", "told"), [
    (lambda: cb.Locus.from_files("a.fa", "a.bed", nmae="x"), r"Locus.from_files\(\): unknown setting locus.nmae"),
    (lambda: cb.fold(None, sweep=3), r"fold\(\): unknown setting scaffold.sweep;"),
    (lambda: cb.build_solute(None, histones="wheat"), r"build_solute\(\): build.histones = 'wheat'"),
    (lambda: cb.open_results("nowhere"), "nowhere holds no results"),
])
def test_bad_calls_are_told_in_one_sentence(call, told):
    with pytest.raises(BadInputError, match=told):
        call()
