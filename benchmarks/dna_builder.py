"""Claim: DNA is built with a sound backbone and all hydrogens, faster than mdna builds it with a broken one.

    python benchmarks/dna_builder.py [--peer /path/to/venv/bin/python] [--sizes 147,1000,10000] [--rounds 3]

The peer is mdna (PyPI) in a virtual environment of its own; without it only our numbers are shown. Both build a
straight duplex of the same random sequence (mdna: heavy atoms, backbone as its templates fall; we: also hydrogens,
with the backbone closed), one program after the other within each round, each in a fresh process on one thread. Process
CPU time of building alone, without imports and a first build that warms up caches; the best round counts. Placing is
that of rigid nucleotides alone, which is all that the peer does. Geometry is
measured on both with our own tables (Gelbin et al. 1996, Parkinson et al. 1996); peak memory is that of the process.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

OURS = """
import json, re, sys, time
import numpy as np
from chromabuild.build.duplex import base_frames, build_dna
from chromabuild.dna.backbone import place_bases
from chromabuild.dna.helix import straight_path
from chromabuild.dna.sequence import base_index
from chromabuild.dna.start import ideal_conformation, placed_conformation
sequence = base_index(open(sys.argv[1]).read().strip())
origin, frame = straight_path(len(sequence))
build_dna(sequence[:100], origin[:100], frame[:100])
start = time.process_time()
position, template, report = build_dna(sequence, origin, frame)
seconds = time.process_time() - start
bases, place, turn = base_frames(sequence, origin, frame)
start = time.process_time()
place_bases(bases, place, turn)
placed_conformation(ideal_conformation(), bases, place, turn)
placing = time.process_time() - start
print(json.dumps({"seconds": seconds, "placing": placing, "atoms": len(position), "bond_rmsz": report["bond_rmsz"],
                  "angle_rmsz": report["angle_rmsz"], "o3_p": [report["o3_p_shortest"], report["o3_p_longest"]],
                  "mebibytes": int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024}))
"""
PEER = """
import contextlib, io, json, re, sys, time
import numpy as np
import mdna
sequence = open(sys.argv[1]).read().strip()
with contextlib.redirect_stdout(io.StringIO()):
    mdna.make(sequence[:100]).get_traj()
    start = time.process_time()
    trajectory = mdna.make(sequence).get_traj()
    seconds = time.process_time() - start
residue, names, chains = [], [], []
for atom in trajectory.topology.atoms:
    residue.append(atom.residue.index); names.append(atom.name); chains.append(atom.residue.chain.index)
letters = [r.name[-1] for r in trajectory.topology.residues]
np.savez(sys.argv[2], position=10 * trajectory.xyz[0], residue=residue, name=names, chain=chains, letter=letters)
print(json.dumps({"seconds": seconds, "atoms": trajectory.n_atoms,
                  "mebibytes": int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024}))
"""


def backbone_of(path: Path) -> dict:
    """Bond and angle RMSZ and the range of O3'-P of a saved duplex, against our tables."""
    from chromabuild.dna.backbone import base_layout, measure_backbone
    from chromabuild.dna.sequence import BASES
    from chromabuild.dna.start import SUGAR

    data = np.load(path)
    n = len(data["letter"])
    sugar, base_atoms = np.full((n, 11, 3), np.nan), np.full((n, 11, 3), np.nan)
    bases, rename = np.array([BASES.index(letter) for letter in data["letter"]]), {"O1P": "OP1", "O2P": "OP2"}
    leading = [base_layout().atoms[letter][:3] for letter in data["letter"]]
    for position, residue, name in zip(data["position"], data["residue"], data["name"], strict=True):
        name = rename.get(name, name)
        if name in SUGAR:
            sugar[residue, SUGAR.index(name)] = position
        elif name in leading[residue]:
            base_atoms[residue, leading[residue].index(name)] = position
    geometry = measure_backbone(bases, sugar, base_atoms, torsions=False)
    return {"bond_rmsz": float(np.sqrt(np.nanmean(geometry.bond_z**2))),
            "angle_rmsz": float(np.sqrt(np.nanmean(geometry.angle_z**2))),
            "o3_p": [float(np.nanmin(geometry.bond[:, 0])), float(np.nanmax(geometry.bond[:, 0]))]}


def main() -> None:
    """Run both and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="Python of an environment with mdna")
    parser.add_argument("--sizes", default="147,1000,10000")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    programs = {"chromabuild": (sys.executable, OURS)} | ({"mdna": (options.peer, PEER)} if options.peer else {})
    print(f"{'program':12} {'bp':>8} {'bp/s':>8} {'placing Mbp/s':>13} {'O3-P, A':>15} {'bond RMSZ':>9} "
          f"{'angle RMSZ':>10} {'MiB':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for size in map(int, options.sizes.split(",")):
            fasta, saved = Path(folder) / "sequence.txt", Path(folder) / "peer.npz"
            letters = np.random.Generator(np.random.Philox(key=size)).integers(0, 4, size)
            fasta.write_text("".join("ACGT"[k] for k in letters))
            best = {}
            for _ in range(options.rounds):
                for name, (python, code) in programs.items():
                    done = subprocess.run([python, "-c", code, str(fasta), str(saved)], capture_output=True, text=True)
                    if done.returncode:
                        sys.exit(f"{name} failed:\n{done.stderr}")
                    result = json.loads(done.stdout.splitlines()[-1])
                    if name not in best or result["seconds"] < best[name]["seconds"]:
                        best[name] = result | (backbone_of(saved) if name == "mdna" else {})
            for name, result in best.items():
                placing = f"{size / result['placing'] / 1e6:.2f}" if "placing" in result else ""
                low, high = result["o3_p"]
                print(f"{name:12} {size:8} {size / result['seconds']:8.0f} {placing:>13} {low:7.3f}-{high:<7.3f} "
                      f"{result['bond_rmsz']:9.2f} {result['angle_rmsz']:10.2f} {result['mebibytes']:7.0f}")


if __name__ == "__main__":
    main()
