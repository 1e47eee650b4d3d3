"""The stage `topology` where a PSF cannot hold the trajectory: one line says so, topology.h5 stands alone."""

import MDAnalysis
import pytest
from support.molecular_systems import make_solute

import chromabuild.api
from chromabuild.base.settings import load_config
from chromabuild.cli.progress import PlainReporter
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.topology_file import Topology
from chromabuild.pipeline import chain, provenance
from chromabuild.pipeline.verify import verify_outputs
from chromabuild.shards.shard_set import ShardSet

N_WATERS = 400_000_000


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Inputs of the stage; the shards are said to hold 1.2e9 atoms."""
    results = tmp_path / "results"
    (results / "shards").mkdir(parents=True)
    (results / "shards" / "manifest.json").write_text("{}")
    solute = make_solute([["DA5", "DC", "DG3"], ["DC5", "DG", "DT3"]])
    solute.write(results / "solute_clean.h5")
    (tmp_path / "locus.yaml").write_text("{}")
    monkeypatch.setattr(ShardSet, "read", lambda folder: None)
    monkeypatch.setattr(chromabuild.api, "assign_force_field", lambda solute, *_, **__: make_topology(
        solute, {"water": N_WATERS, "sodium": 4}))
    return tmp_path / "locus.yaml", solute


@pytest.mark.filterwarnings("ignore")
def test_the_psf_steps_aside_and_comes_back(build):
    path, solute = build
    stage = chain.stage_named("topology")

    def run(selection):
        config = load_config(path, {"dynamics.trajectory_selection": selection})
        summary = chain.run_stage(stage, config, 1, PlainReporter())
        assert chain.is_current(stage, config)
        recorded = set(provenance.read(config.output)["stages"]["topology"]["outputs"])
        assert all(check["result"] == "ok" for check in verify_outputs(config)["checks"] if check["what"] in recorded)
        assert {"topology.h5", "topology.psf"} & {p.name for p in path.parent.joinpath("results").iterdir()} == recorded
        return summary, recorded

    summary, recorded = run("auto")
    assert recorded == {"topology.h5", "topology.psf"}
    psf = path.parent / "results" / "topology.psf"
    universe = MDAnalysis.Universe(psf)
    assert len(universe.atoms) == solute.n_atoms + 4
    n = solute.n_atoms + 4
    assert summary["psf"] == f"{n} of {n + 3 * N_WATERS} atoms, those of the trajectory"
    summary, recorded = run("all")
    assert recorded == {"topology.h5"} and not psf.exists()
    assert "more than the 999999999 of a PSF, topology.h5 stands alone" in summary["psf"]
    assert Topology.read(psf.with_suffix(".h5")).n_atoms == solute.n_atoms + 4 + 3 * N_WATERS
