"""The report's pictures of atoms, from the files of an output folder."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from chromabuild.base.box_vectors import box_of
from chromabuild.base.record import StageRecord
from chromabuild.molecule.solute import Solute
from chromabuild.report import html, pictures
from mesoscale.scaffold import Scaffold

Stages = Mapping[str, StageRecord]
"""Name to record of every stage that was run."""
WATER_LIMIT = 3_000_000  # waters read for the picture of the box; more are thinned by whole bricks


def solute_file(folder: Path, stages: Stages) -> Path | None:
    """The newest solute that is there: what was put into water, or else the corrected or the built one."""
    taken = stages.get("solvate", {}).get("provenance", {}).get("inputs", {}).get("solute", {}).get("file")
    files = (folder / name for name in (taken, "solute_clean.h5", "solute.h5") if name)
    return next((file for file in files if file.is_file()), None)


def _solute(folder: Path, stages: Stages) -> Solute | None:
    file = solute_file(folder, stages)
    return Solute.read(file) if file else None


def solute_figure(folder: Path, stages: Stages) -> str:
    """All atoms of the solute; empty where there is none."""
    solute = _solute(folder, stages)
    if solute is None:
        return ""
    return html.picture(pictures.solute_picture(solute.position, *pictures.atom_style(solute)),
                        f"The solute: every atom of DNA and histones, {solute.n_atoms:,} in all.",
                        list(pictures.molecule_colours(solute).items()))


def box_figure(folder: Path, stages: Stages) -> str:
    """The solute in water and ions; empty where they were not added."""
    solute = _solute(folder, stages)
    if solute is None or "solvate" not in stages:
        return ""
    box, position, *solvent = _box_atoms(folder / "shards", solute.n_atoms)
    return html.picture(pictures.box_picture(position, *pictures.atom_style(solute), box, *solvent),
                        "The periodic box, cut open: water and ions in front are left out.",
                        [("cations", pictures.CATION), ("Cl-", pictures.CHLORIDE), ("water", pictures.WATER)])


def scaffold_figure(folder: Path, stages: Stages) -> str:
    """The folded fibre; empty where there is none."""
    if not (folder / "scaffold.h5").is_file():
        return ""
    scaffold = Scaffold.read(folder / "scaffold.h5")
    return html.picture(pictures.scaffold_picture(scaffold.origin, scaffold.frame, scaffold.nucleosome,
                                                  scaffold.core_origin, scaffold.core_frame),
                        "The scaffold: DNA by nucleosome from blue (start) to red (end), linkers grey, histone cores "
                        "as discs.")


def _box_atoms(folder: Path, solute_atoms: int) -> tuple[np.ndarray, ...]:
    """Box, (3,) or (3, 3), then positions (k, 3) float32 in it: solute, water oxygens, cations, chloride."""
    from chromabuild.molecule.water_models import WATER_MODELS
    from chromabuild.shards.brick_file import read_brick

    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    counts = manifest["counts"]
    every = max(1, round(counts["water"] / WATER_LIMIT))
    n_sites = WATER_MODELS[manifest.get("water", "tip3p")].n_atoms
    first_ion = solute_atoms + n_sites * counts["water"]
    first_chloride = manifest["atoms"] - counts["chloride"]
    solute = np.empty((solute_atoms, 3), dtype=np.float32)
    water, cations, chloride = [], [], []
    for k, shard in enumerate(manifest["shards"]):
        brick = read_brick(folder / f"{shard['name']}.cbb")
        ids, position = brick.global_id, (brick.position / 1000).astype(np.float32)
        solute[ids[ids < solute_atoms]] = position[ids < solute_atoms]
        if k % every == 0:
            is_water = (ids >= solute_atoms) & (ids < first_ion)
            water.append(position[is_water & ((ids - solute_atoms) % n_sites == 0)])
        cations.append(position[(ids >= first_ion) & (ids < first_chloride)])
        chloride.append(position[ids >= first_chloride])
    box = box_of(np.array(manifest["box"]), np.array(manifest.get("tilt", 0)))
    return (box, solute, *(np.concatenate(p) for p in (water, cations, chloride)))
