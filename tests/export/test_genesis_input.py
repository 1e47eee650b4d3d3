"""GENESIS input, which no registry carries: its files as other readers take them, every key and group of atoms against
what the settings say, and runs with a file a rank. With CHARMM's force fields: test_charmm.py."""

import os
import re
import subprocess
from dataclasses import replace

import MDAnalysis
import numpy as np
import pytest
from support.planned_export import BONDS, DYNAMICS, planned
from support.triclinic_systems import rhombic_dodecahedron

from chromabuild.base.errors import BadInputError
from chromabuild.export.genesis import export_genesis, selection_of
from chromabuild.export.parts import PARTS
from chromabuild.simulate.groups import atoms_of_group


def test_leaning_boxes_are_refused(mixed, tmp_path):
    with pytest.raises(BadInputError, match="rectangular boxes alone.*leave solvate.box empty"):
        export_genesis(replace(mixed, box=rhombic_dodecahedron(40.0)), tmp_path, DYNAMICS)


def test_genesis_files(mixed, tmp_path):
    """Coordinates as MDAnalysis reads them; periods are multiples of the update of pair lists."""
    paths = export_genesis(mixed, tmp_path, DYNAMICS, planned(), 2, BONDS)
    assert all(path.is_file() for path in paths)
    universe = MDAnalysis.Universe(tmp_path / "system.prmtop", tmp_path / "system.inpcrd", format="INPCRD")
    assert universe.atoms.positions == pytest.approx(mixed.position, abs=1e-5)
    last = (tmp_path / "system.inpcrd").read_text().splitlines()[-1]
    assert [float(last[12 * k:12 * k + 12]) for k in range(6)] == [*mixed.box, 90, 90, 90]
    for path in paths:
        if path.suffix != ".inp" or "_prst" in path.name:
            continue
        keys = dict(re.findall(r"^(\w+) *= (.*)$", path.read_text(), re.M))
        period = int(keys["nbupdate_period"])
        assert all(int(keys[name]) % period == 0 for name in ("nsteps", "eneout_period", "crdout_period"))
        assert keys["forcefield"] == "AMBER" and keys["switchdist"] == keys["cutoffdist"] == "8.0"
    keys = dict(re.findall(r"^(\w+) *= (.*)$", (tmp_path / "02-heat-1.inp").read_text(), re.M))
    assert keys["rstfile"] == "02-heat-1.rst" and keys["ambreffile"] == "system.inpcrd"
    assert keys["hydrogen_mr"] == "YES" and keys["hmr_ratio"] == keys["hmr_ratio_xh1"] == "3.0"
    changes = int(keys["nsteps"]) / int(keys["anneal_period"])
    assert changes * float(keys["dtemperature"]) == pytest.approx(20) and changes == round(changes)
    assert (keys["function3"], keys["reference3"], keys["select_index3"]) == ("DIST", "2.95", "3 4")
    assert (keys["group3"], keys["group4"]) == ("ai:4", "ai:71") and keys["nfunctions"] == "3"
    keys = dict(re.findall(r"^(\w+) *= (.*)$", (tmp_path / "03-produce.inp").read_text(), re.M))
    assert (keys["ensemble"], keys["pressure"], keys["timestep"]) == ("NPT", "2.0", "0.004")


def test_genesis_with_a_file_a_rank(mixed, tmp_path):
    """prst_setup makes a set where restraints, masses or rigid bonds change, from that of the phase before, and the
    script names every control file in turn."""
    export_genesis(mixed, tmp_path, DYNAMICS, planned(), 2, BONDS)
    folder = tmp_path / "parallel"
    parts = [f"02-heat-{k}" for k in range(1, PARTS + 1)]
    stems = ["01-minimise", *parts, "03-produce"]
    script = (folder / "run.sh").read_text()
    assert re.findall(r"^(cut|run) (\S+)$", script, re.M) == [(do, stem) for stem in stems for do in ("cut", "run")]
    assert {path.stem for path in folder.glob("*.inp")} == {stem + end for stem in stems for end in ("", "_prst")}
    keys = {path.stem: dict(re.findall(r"^(\w+) *= (.*)$", path.read_text(), re.M)) for path in folder.glob("*.inp")}
    for before, stem in zip([None, *stems], stems, strict=False):
        cut, run = keys[f"{stem}_prst"], keys[stem]
        assert (folder / cut["prmtopfile"]).is_file() and (folder / cut["ambcrdfile"]).is_file()
        assert cut["prmtopfile"] == ("../system.prmtop" if before is None else "../heavy.prmtop")
        heads = re.findall(r"^rstfile *= (.*)$", (folder / f"{stem}_prst.inp").read_text(), re.M)
        assert heads == [*([f"{before}_().rst"] if before else []), f"{stem}_start_().rst"]
        assert cut.get("restart") == (None if before in (None, "01-minimise") else "YES")
        starts, ends = re.findall(r"^rstfile *= (.*)$", (folder / f"{stem}.inp").read_text(), re.M)
        assert (starts, ends) == (f"{stem}_start_().rst", f"{stem}_().rst")
        assert run.get("selfile") == cut.get("selfile") == (None if stem == "03-produce" else f"{stem}.sel")
        assert not {"prmtopfile", "ambcrdfile", "hydrogen_mr", "hmr_ratio"} & run.keys() and "type" not in cut
        whole = dict(re.findall(r"^(\w+) *= (.*)$", (tmp_path / f"{stem}.inp").read_text(), re.M))
        for key in ("nsteps", "forcefield", "pme_ngrid_x", "box_size_z", "ensemble", "group1", "constant1"):
            assert run.get(key) == whole.get(key)
        assert cut["domain_xyz"] == "8" and cut["pairlistdist"] == whole["pairlistdist"]
    assert keys["02-heat-1"]["dcdfile"] == "02-heat-1_().dcd"
    # Three runs of the script with stand-ins: what is there is neither cut nor run again.
    (tmp_path / "cut").write_text('#!/bin/sh\ngrep "domain_xyz" $1 >>did; touch $(basename $1 _prst.run)_start_0.rst\n')
    (tmp_path / "spdyn").write_text('#!/bin/sh\necho $1 >>did; touch $(basename $1 .inp)_000.rst\n')
    environment = {**os.environ, "DOMAINS": "64", "PRST_SETUP": f"sh {tmp_path / 'cut'}",
                   "SPDYN": f"sh {tmp_path / 'spdyn'}"}
    for _ in range(2):
        subprocess.run([folder / "run.sh"], env=environment, check=True)
        did = (folder / "did").read_text().splitlines()
        assert did == [line for stem in stems for line in ("domain_xyz       = 64", f"{stem}.inp")]


def test_genesis_goes_on_with_a_set_where_nothing_changes(mixed, tmp_path):
    phases = [{"name": name, "steps": 100, "output_period": 10, "trajectory_period": 10} for name in ("a", "b")]
    export_genesis(mixed, tmp_path, DYNAMICS, planned(phases), 2)
    assert [path.name for path in sorted((tmp_path / "parallel").glob("*_prst.inp"))] == ["01-a_prst.inp"]
    assert "rstfile          = 01-a_().rst\n" in (tmp_path / "parallel/02-b.inp").read_text()


@pytest.mark.parametrize("group", ["solute", "heavy", "backbone", "dna", "protein"])
def test_genesis_selections_mean_the_groups(mixed, group):
    """The expression, evaluated over residue numbers, atom names and masses."""
    topology = mixed.topology
    number = topology.residue_of_atom() + 1
    names = topology.per_atom("atom_name").astype("U4")
    text = selection_of(group, topology).replace("heavy", "HEAVY")
    text = re.sub(r"rno:(\d+)-(\d+)", r"((number >= \1) & (number <= \2))", text)
    text = re.sub(r"an:([\w']+)", lambda found: f"(names == {found[1]!r})", text)
    text = text.replace(" or ", " | ").replace(" and ", " & ")
    chosen = eval(text, {"number": number, "names": names, "HEAVY": topology.masses() > 1.5})
    assert np.flatnonzero(chosen).tolist() == atoms_of_group(group, topology).tolist()
