"""Dynamics through the command line on a small solvated system, its report, and a killed chain that continues."""

import json
import re
import shutil
import subprocess
import time
import warnings
from html.parser import HTMLParser

import MDAnalysis
import numpy as np
import pytest
from support.command_line import command, digests, environment, result_of

from chromabuild import open_results
from chromabuild.analysis.trajectory_file import quiet
from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import load_config
from chromabuild.pipeline.analysis import analyse, phase_source
from chromabuild.simulate.energy_log import EnergyLog
from chromabuild.simulate.openmm_engine import nonbonded_options

pytestmark = pytest.mark.slow


class Links(HTMLParser):
    """Everything that a browser would fetch."""

    def __init__(self):
        super().__init__()
        self.found, self.images, self.tags = [], 0, set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        for name, value in attributes:
            if name in ("src", "srcset", "href", "xlink:href", "data", "action", "poster", "background"):
                self.found.append(value or "")
                self.images += tag == "img" and (value or "").startswith("data:image/webp;base64,")

    handle_startendtag = handle_starttag


@pytest.fixture(scope="module")
def simulated(piece):
    """Set up, 60 steps of minimisation and 0.2 ps of dynamics; then the report."""
    summary = result_of("run", "--threads", 2, cwd=piece.folder)["summary"]
    result_of("report", cwd=piece.folder)
    return piece, summary


def test_log_trajectory_and_restart(simulated):
    build, summary = simulated
    folder = build.results / "md"
    minimisation, table = EnergyLog.read(folder / "01-minimise.log"), EnergyLog.read(folder / "02-dynamics.log")
    assert minimisation["STEP"].tolist() == list(range(0, 61, 10))
    assert np.all(np.diff(minimisation["POTENTIAL_ENE"]) < 0)
    assert table["TIME"].tolist() == pytest.approx(np.arange(0, 0.201, 0.02).tolist())
    assert summary["simulated_ps"] == 0.2 and summary["atoms"] == build.manifest["atoms"]
    for name in table.columns:
        assert np.isfinite(table[name]).all(), name
    # Of what kinetic energy, potential energy and thermostat exchange, the conserved quantity keeps all but 1 %.
    assert np.ptp(table["CONSERVED_ENE"]) < 0.01 * table["KINETIC_ENE"].mean()
    assert table["TOTAL_ENE"][-1] - table["TOTAL_ENE"][0] > 0.05 * table["KINETIC_ENE"].mean()
    assert (folder / "restart" / "02-dynamics_0.rst").stat().st_size > 48 * build.manifest["atoms"]
    for name in ("setup", "01-minimise", "02-dynamics"):
        assert (folder / f"{name}.inp").is_file()


def test_temperature_is_brought_back_by_the_thermostat(simulated):
    """Velocities are drawn for 310 K; half of that, at most, goes at once into the vibrations of a minimised structure.

    Equipartition of a harmonic system that starts in its minimum gives 155 K. The thermostat fills the gap, half of
    each kcal going on into potential energy: after its 0.1 ps at most exp(-1/2) of the 155 K are missing, after 0.2 ps
    exp(-1). Strain left over from the minimisation only adds to the temperature.
    """
    table = EnergyLog.read(simulated[0].results / "md" / "02-dynamics.log")
    temperature = table["TEMPERATURE"]
    assert temperature[0] == pytest.approx(310, rel=0.03)
    assert (temperature > 155).all() and (temperature < 340).all()
    assert (temperature[table["TIME"] > 0.09] > 310 - 155 * np.exp(-0.45)).all()
    assert (temperature[table["TIME"] > 0.19] > 310 - 155 * np.exp(-0.95)).all()


def test_both_engines_take_the_same_reciprocal_space(simulated):
    """Grid and screening that chromamd notes in its log are those that the OpenMM engine is given."""
    build, _ = simulated
    line = re.search(r"reciprocal space: (\d+) x (\d+) x (\d+) points, alpha ([0-9.]+)/angstrom",
                     (build.results / "md" / "02-dynamics.log").read_text())
    settings = load_config(build.folder / "locus.yaml")
    options = nonbonded_options(settings.dynamics, np.array(build.manifest["box"]))
    assert tuple(int(points) for points in line.groups()[:3]) == options.grid
    assert float(line[4]) == pytest.approx(options.alpha, abs=1e-5)


def test_trajectory_with_the_psf_in_mdanalysis(simulated):
    """Five frames in global order: near where the atoms were put, rigid waters and X-H bonds at their lengths."""
    build, _ = simulated
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        universe = MDAnalysis.Universe(build.results / "topology.psf", build.results / "md" / "02-dynamics.dcd")
    assert len(universe.trajectory) == 5
    assert len(universe.atoms) == build.manifest["atoms"]
    box = np.array(build.manifest["box"])
    protein = universe.select_atoms("protein")
    assert len(protein) == build.manifest["counts"]["solute"] and len(protein.residues) == 135 + 102
    water = universe.select_atoms("resname WAT HOH TIP3")
    assert len(water) == 3 * build.manifest["counts"]["water"]
    frames = []
    for frame in universe.trajectory:
        assert frame.dimensions[:3] == pytest.approx(box, abs=1e-3)
        assert np.isfinite(frame.positions).all()
        corner = water.positions.reshape(-1, 3, 3).astype(float)
        for other in (1, 2):
            bond = corner[:, other] - corner[:, 0]
            bond -= np.round(bond / box) * box
            # Single-precision coordinates of up to 100 angstrom.
            assert np.abs(np.linalg.norm(bond, axis=1) - 0.9572).max() < 1e-4
        frames.append(protein.positions.astype(float))
    moved = frames[-1] - frames[0]
    moved -= np.round(moved / box) * box
    assert 0.01 < np.sqrt(np.mean(moved**2)) < 2.0


@pytest.mark.parametrize("engine, ranks", [("chromamd", 1), ("chromamd", 2), ("openmm", 1)])
def test_solute_and_ions_alone_in_mdanalysis(piece, tmp_path, engine, ranks):
    """topology.psf and the trajectory hold the same atoms: bonds keep their lengths in every frame."""
    shutil.copytree(piece.folder, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("md"))
    phases = [{"name": "minimise", "kind": "minimise", "steps": 2 if engine == "openmm" else 10},
              {"name": "dynamics", "steps": 4, "timestep": 0.5, "trajectory_period": 2}]
    settings = [part for text in ("dynamics.trajectory_selection=solute-and-ions", f"dynamics.engine={engine}",
                                  f"dynamics.ranks={ranks}", f"simulate.phases={json.dumps(phases)}")
                for part in ("--set", text)]
    for stage in ("topology", "run"):
        result_of(stage, "--threads", 1, *settings, cwd=tmp_path)
    counts = piece.manifest["counts"]
    n_ions = sum(count for name, count in counts.items() if name not in ("solute", "water"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        universe = MDAnalysis.Universe(tmp_path / "results" / "topology.psf", tmp_path / "results/md/02-dynamics.dcd")
    assert len(universe.atoms) == counts["solute"] + n_ions and n_ions > 0
    assert len(universe.trajectory) == 2 and len(universe.select_atoms("resname HOH")) == 0
    protein, box = universe.select_atoms("protein"), np.array(piece.manifest["box"])
    assert len(protein) == counts["solute"]
    pairs = protein.bonds.indices
    for frame in universe.trajectory:
        bond = frame.positions[pairs[:, 1]].astype(float) - frame.positions[pairs[:, 0]]
        length = np.linalg.norm(bond - np.round(bond / box) * box, axis=1)
        assert 0.9 < length.min() and length.max() < 2.3
    made = open_results(tmp_path / "results").universe
    assert made.atoms.names.tolist() == universe.atoms.names.tolist()
    assert np.array_equal([frame.positions for frame in made.trajectory],
                          [frame.positions for frame in universe.trajectory])


def test_analysis_opens_a_phase(simulated):
    """Of a protein alone, whose frames have the times of the phase."""
    folder = simulated[0].results
    source = phase_source(folder, None)
    assert source.name == "phase dynamics" and source.time.tolist() == pytest.approx(np.arange(1, 6) * 0.04)
    assert len(source.universe.trajectory) == 5 and {"topology.h5", "solute_clean.h5"} < {p.name for p in source.files}
    with pytest.raises(BadInputError, match="has no trajectory of a phase cool: choose from dynamics"):
        phase_source(folder, "cool")
    with quiet(), pytest.raises(BadInputError, match="phase dynamics holds no DNA"):
        analyse(source, folder / "analysis")


def test_report_stands_alone(simulated):
    """One file that a browser shows without asking anyone for anything."""
    page = (simulated[0].results / "report.html").read_text(encoding="utf-8")
    links = Links()
    links.feed(page)
    assert links.images >= 1 and not links.tags & {"script", "iframe", "object", "embed", "link", "base"}
    assert all(link.startswith(("data:", "#")) for link in links.found)
    assert not re.search(r"@import|url\(\s*['\"]?(?!#|data:|&quot;#)", page)
    for text in ("Box and ions", "Minimisation and dynamics", "Force field"):
        assert text in page


@pytest.mark.parametrize(("announced", "begun"), [
    ("all-atom solute", "provenance.json"), ("water, ions and shards", "shards/*brick_*")])
def test_a_killed_chain_continues_to_the_same_files(nucleosome, tmp_path, announced, begun):
    """kill -9 while a stage works, here with its first file begun; the same command then finishes what was left."""
    for path in nucleosome.folder.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    results = tmp_path / "results"
    results.mkdir()
    for name in ("scaffold.h5", "provenance.json"):
        shutil.copy(nucleosome.results / name, results)
    chain = ("all", "--until", "solvate", "--threads", "2")
    process = subprocess.Popen(command(*chain), cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith(f"{announced} ..."):
            break
    while not any(results.glob(begun)):
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -9
    process.stderr.close()
    assert not (results / "shards" / "manifest.json").exists()
    done = result_of(*chain, cwd=tmp_path)["stages"]
    assert not done["scaffold"]["run"] and done["solvate"]["run"]
    whole = digests(nucleosome.results)
    assert digests(results) == {name: value for name, value in whole.items() if not name.startswith("topology.")}
