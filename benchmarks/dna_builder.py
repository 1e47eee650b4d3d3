"""DNA with a sound backbone and all hydrogens: speed, geometry and memory beside mdna (PyPI).

Both build a straight duplex of the same random sequence (mdna: heavy atoms, backbone as its templates fall; we: also
hydrogens, with the backbone closed), in turn, each in a fresh process on one thread. Process CPU time of building
alone, without imports and a first build that warms up caches; the best round counts. "placing" is that of rigid
nucleotides alone, which is all that the peer does. Geometry is measured on both with our own tables (Gelbin et al.
1996, Parkinson et al. 1996); peak memory is that of the process. --peers is the Python of an environment with mdna;
without it only our numbers are shown.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import peers
from common.command import Benchmark

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
    """Run both in turn."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--peers", type=Path, metavar="PYTHON", help="Python of an environment with mdna (PyPI)")
    add("--sizes", type=int, nargs="+", default=[147, 1000, 10_000], help="base pairs")
    add("--rounds", type=int, default=3)
    given = benchmark.start(quick={"sizes": [147], "rounds": 1})
    programs = {"chromabuild": (sys.executable, OURS)}
    if given.peers:
        programs["mdna"] = (str(given.peers), PEER)
    else:
        print(peers.missing("mdna"), file=sys.stderr)
    table = benchmark.table(
        "speed", "Construction of straight all-atom DNA of random sequence, 1 core", program="",
        **{"base pairs": "", "base pairs per CPU second": ",.0f", "placement, million bp/s": ".2f", "O3'-P, Å": "",
           "bond RMSZ": ".2f", "angle RMSZ": ".2f", "peak memory, MiB": ".0f"})
    with tempfile.TemporaryDirectory() as folder:
        for size in given.sizes:
            fasta, saved = Path(folder) / "sequence.txt", Path(folder) / "peer.npz"
            letters = np.random.Generator(np.random.Philox(key=size)).integers(0, 4, size)
            fasta.write_text("".join("ACGT"[k] for k in letters))
            best = {}
            for _ in range(given.rounds):
                for name, (python, code) in programs.items():
                    done = subprocess.run([python, "-P", "-c", code, str(fasta), str(saved)], capture_output=True,
                                          text=True)
                    if done.returncode:
                        sys.exit(f"{name} failed:\n{done.stderr}")
                    result = json.loads(done.stdout.splitlines()[-1])
                    if name not in best or result["seconds"] < best[name]["seconds"]:
                        best[name] = result | (backbone_of(saved) if name == "mdna" else {})
            for name, result in best.items():
                placing = size / result["placing"] / 1e6 if "placing" in result else None
                low, high = result["o3_p"]
                table.row(name, size, size / result["seconds"], placing, f"{low:.3f} to {high:.3f}",
                          result["bond_rmsz"], result["angle_rmsz"], result["mebibytes"])
    benchmark.finish()


if __name__ == "__main__":
    main()
