"""A made-up output folder with the files of docs/reference/file-formats.md, small enough for a unit test."""

import json

import numpy as np

from chromabuild.base.settings import Settings
from chromabuild.molecule.residues import residue_names
from chromabuild.molecule.solute import Solute
from chromabuild.pipeline.provenance import FORMAT, VERSION
from chromabuild.shards.brick_file import BrickFile, packed
from mesoscale.scaffold import Scaffold

TWIST = np.radians(34.5)
RISE = 3.32


def fibre(n_nucleosomes, linker):
    """Base-pair and core frames of nucleosomes wound on ideal superhelices and joined by straight linkers."""
    origins, frames, owner, cores, core_frames, dyads = [], [], [], [], [], []
    place, turn = np.zeros(3), np.eye(3)

    def append(local, local_frames, index):
        nonlocal place, turn
        rotation = turn @ local_frames[0].T
        shift = place - rotation @ local[0]
        moved = local @ rotation.T + shift
        origins.extend(moved[:-1])
        frames.extend(rotation @ f for f in local_frames[:-1])
        owner.extend([index] * (len(local) - 1))
        place, turn = moved[-1], rotation @ local_frames[-1]
        return rotation, shift

    def straight(n):
        k = np.arange(n + 1)
        z = np.zeros(n + 1)
        c, s = np.cos(k * TWIST), np.sin(k * TWIST)
        frame = np.stack([np.stack([c, s, z], 1), np.stack([-s, c, z], 1), np.stack([z, z, z + 1], 1)], axis=2)
        return np.stack([z, z, k * RISE], axis=1), frame

    def wound():
        k = np.arange(-73, 75)
        angle = -k * 1.65 * 2 * np.pi / 147
        path = np.stack([41.9 * np.cos(angle), 41.9 * np.sin(angle), k * 25.9 * 1.65 / 147], axis=1)
        tangent = np.gradient(path, axis=0)
        tangent /= np.linalg.norm(tangent, axis=1)[:, None]
        inward = -path * [1, 1, 0] / 41.9
        inward -= tangent * (inward * tangent).sum(axis=1)[:, None]
        inward /= np.linalg.norm(inward, axis=1)[:, None]
        side = np.cross(tangent, inward)
        c, s = np.cos(TWIST * k)[:, None], np.sin(TWIST * k)[:, None]
        return path, np.stack([c * inward + s * side, -s * inward + c * side, tangent], axis=2)

    for k in range(n_nucleosomes):
        append(*straight(linker), -1)
        dyads.append(len(origins) + 73)
        rotation, shift = append(*wound(), k)
        cores.append(shift)
        core_frames.append(rotation)
    append(*straight(linker), -1)
    return tuple(map(np.array, (origins, frames, owner, cores, core_frames, dyads)))


def small_solute(n_residues=12):
    """One strand of thymidines with atoms strewn along a line; enough to be drawn."""
    template = np.full(n_residues, residue_names().index("DT"), dtype=np.uint16)
    solute = Solute(position=np.zeros((0, 3), np.float32), residue_template=template,
                    residue_number=np.arange(1, n_residues + 1, dtype=np.int32),
                    residue_segment=np.zeros(n_residues, dtype=np.uint16), segment_name=["DNAI"], segment_chain=["A"],
                    molecule_first_residue=np.array([0, n_residues]), molecule_name=["DNA-I"],
                    molecule_nucleosome=np.array([-1], dtype=np.int32))
    n = int(solute.residue_first_atom[-1])
    rng = np.random.default_rng(1)
    solute.position = (rng.normal(0, 3, (n, 3)) + np.linspace(0, 40, n)[:, None] * [1, 0, 0]).astype(np.float32)
    return solute


def write_build(folder):
    """Fill ``folder`` as the stages would; gives the configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    config = Settings(output=str(folder))
    origin, frame, owner, cores, core_frames, dyads = fibre(2, 20)
    sweeps = np.arange(40.0)
    Scaffold("made up", "chrXIII", origin, frame, np.full(len(origin), ord("T"), np.uint8), owner.astype(np.int32),
             100 + np.arange(len(origin)), cores, core_frames, dyads, dyads - 73, dyads + 73,
             energy={"total": np.exp(-sweeps / 9) * 30 + 12, "stretch": np.exp(-sweeps / 5) * 20 + 3, "sweep": sweeps,
                     "end_to_end": np.linspace(60, 45, 40)}, acceptance={"pivot": 0.31}).write(folder / "scaffold.h5")
    solute = small_solute()
    solute.write(folder / "solute_clean.h5")
    pair = {"atom_a": "DNAI:DT:3:C2", "atom_b": "DNAI:DT:5:O4", "distance": 0.72, "class": "DNA-DNA"}
    measures = {"atoms": solute.n_atoms, "clashscore": 12.5, "ring_piercings": {"count": 1, "items": []}}
    (folder / "clash_report.json").write_text(json.dumps({
        "format": "chromabuild-clash-report", "version": 1, "threshold": 0.9, "mode": "default", "seed": 1,
        "before": {"pairs_below_threshold": {"count": 1, "items": [pair]}, "worst_contacts": [pair], **measures},
        "after": {"pairs_below_threshold": {"count": 0, "items": []}, "worst_contacts": [], **measures},
        "moves": [{"kind": "chi"}, {"kind": "chi"}], "unresolved": [], "invariants": {}}))
    box = [80.0, 50.0, 50.0]
    rng = np.random.default_rng(2)
    n, waters, ions = solute.n_atoms, 300, 5
    water = np.repeat(rng.uniform(0, 1, (waters, 3)) * box, 3, axis=0)
    everything = np.concatenate([solute.position + [15, 25, 25], water, rng.uniform(0, 1, (2 * ions, 3)) * box])
    (folder / "shards").mkdir()
    brick = BrickFile(np.array(box), np.zeros(3), np.array(box), np.arange(len(everything)),
                      (everything * 1000).round().astype(np.int32))
    (folder / "shards" / "brick_00000.cbb").write_bytes(packed(brick))
    counts = {"solute": n, "water": waters, "sodium": ions, "potassium": 0, "magnesium": 0, "chloride": ions}
    (folder / "shards" / "manifest.json").write_text(json.dumps({
        "format": "chromabuild-shards", "version": 1, "box": box, "grid": [1, 1, 1], "atoms": len(everything),
        "counts": counts, "net_charge": 0, "shards": [{"name": "brick_00000", "atoms": len(everything)}]}))
    (folder / "md").mkdir()
    lines = ["INFO: STEP TIME TOTAL_ENE POTENTIAL_ENE KINETIC_ENE TEMPERATURE"]
    for k in range(11):
        lines.append(f"INFO: {10 * k} {0.02 * k:.3f} {-5000 + 0.1 * k:.3f} {-6000 + 50 * k:.3f} "
                     f"{1000 - 50 * k + 0.1 * k:.3f} {300 - 12 * k:.2f}")
    lines += ["", "Timing (seconds, mean over ranks):", "  real space          12.814    60.0 %",
              "  total               21.357"]
    (folder / "md" / "phases.json").write_text(json.dumps({"format": "chromabuild-phases", "phases": [
        {"name": "dynamics", "kind": "dynamics", "log": "01-dynamics.log", "trajectory": None,
         "restart": "restart/01-dynamics_().rst", "seconds_per_step": 0.5}]}))
    (folder / "md" / "01-dynamics.log").write_text("\n".join(lines) + "\n")

    def stage(title, outputs, summary):
        return {"title": title, "started": "2026-01-01T00:00:00Z", "seconds": 1.5, "threads": 2,
                "outputs": {file: "0" * 64 for file in outputs}, "summary": summary,
                "provenance": {"stage": title, "seed": 1, "settings": {"clash": {"threshold": 0.9}},
                               "inputs": {"fasta": {"file": "locus.fa", "blake3": "ab" * 32}},
                               "versions": {"chromabuild": "0.1.0"}}}

    stages = {
        "scaffold": stage("mesoscale scaffold", ["scaffold.h5"], {
            "name": "<made up>", "chromosome": "chrXIII", "start": 100, "end": 454, "base_pairs": 354,
            "nucleosomes": 2, "shifts": [{"nucleosome": 1, "from": 250.0, "to": 257.0, "reason": "too close"}]}),
        "build": stage("all-atom solute", ["solute.h5"], {"atoms": n}),
        "clash": stage("clash correction", ["solute_clean.h5"], {"pairs_before": 1, "pairs_after": 0}),
        "solvate": stage("water, ions and shards", ["shards/manifest.json"], {
            "box": box, "grid": [1, 1, 1], "atoms": len(everything), "counts": counts, "net_charge": 0}),
        "run": stage("minimisation and dynamics", ["md/phases.json", "md/01-dynamics.log"], {
            "engine": "chromamd", "atoms": len(everything), "temperature": 300.0, "simulated_ps": 0.2,
            "ns_per_day": 0.31, "trajectory": "md/trajectory.dcd"}),
    }
    (folder / "provenance.json").write_text(json.dumps({"format": FORMAT, "version": VERSION, "stages": stages}))
    return config
