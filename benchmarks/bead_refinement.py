"""The stage `refine` on regular arrays: its memory, how far the model moves, and how sound its atoms are.

Each array is folded and built once, refined with the settings of the stage, and freed of clashes with and without that.
A base pair is open where the ring nitrogens that share a hydrogen are more than 3.5 angstrom apart. The round trip lays
the built atoms on their own beads.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from common.command import Benchmark
from common.memory import MemoryWatch

from chromabuild.build.beads import Beads, beads_of
from chromabuild.build.from_beads import atoms_on_beads
from chromabuild.molecule.residues import residue_library
from chromabuild.molecule.solute import Solute

RING = {"A": "N1", "G": "N1", "C": "N3", "T": "N3"}
HYDROGEN_BOND = 3.5


def chromabuild(folder: Path, *words: object) -> dict:
    """Run a command in a folder; what it tells as JSON."""
    done = subprocess.run([sys.executable, "-P", "-m", "chromabuild.cli", *map(str, words), "--json"], cwd=folder,
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def open_pairs(solute: Solute, beads: Beads) -> int:
    """Base pairs without a hydrogen bond between rings."""
    library, first = list(residue_library().values()), solute.residue_first_atom
    template = [library[k] for k in solute.residue_template]
    one = np.flatnonzero((beads.partner >= 0) & (np.arange(len(template)) < beads.partner))
    ends = [[solute.position[first[k] + template[k].index[RING[template[k].base]]] for k in residues]
            for residues in (one, beads.partner[one])]
    return int(np.sum(np.linalg.norm(np.subtract(*ends), axis=1) > HYDROGEN_BOND))


def rms(difference: np.ndarray) -> float:
    """Of (n, 3)."""
    return float(np.sqrt(np.mean(np.sum(difference**2, axis=1))))


def main() -> None:
    """All arrays, one after the other."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--arrays", nargs="+", default=["1x601:177", "3x601:197", "12x601:197"])
    add("--length", default="100 ps")
    add("--threads", type=int, default=1)
    add("--work", type=Path, default=Path("bead_refinement"), help="folder of the builds")
    given = benchmark.start(quick={"arrays": ["1x601:147"], "length": "1 ps"})
    trip = benchmark.table("trip", "Atoms to beads and back where they are", array="", **{
        "base pairs": "d", "DNA, rms, Å": ".2f", "DNA, most, Å": ".2f", "histones, most, Å": ".4f"})
    size = benchmark.table("memory", f"Memory of the stage refine on {given.threads} thread(s)", array="", **{
        "atoms": ",", "beads": ",", "GB": ".2f"})
    sound = benchmark.table("sound", f"What {given.length} of beads do to an array", array="", **{
        "beads move, rms, Å": ".1f", "DNA off its beads, rms, Å": ".2f", "proteins, rms, Å": ".2f",
        "open pairs, built": "d", "open pairs, refined": "d", "clashes, built": "d", "clashes, refined": "d",
        "clashes, corrected": "d"})
    for array in given.arrays:
        folder = given.work / array.replace(":", "_")
        if not (folder / "locus.yaml").is_file():
            given.work.mkdir(parents=True, exist_ok=True)
            chromabuild(given.work, "init", folder.name, "--array", array)
        chromabuild(folder, "all", "--until", "build", "--threads", given.threads)
        wanted = ("--threads", given.threads, "--set", "refine.enabled=true", "--set", f"refine.length={given.length}")
        with MemoryWatch() as memory:
            told = chromabuild(folder, "refine", *wanted)["summary"]
        built, refined = (Solute.read(folder / "results" / f"{name}.h5") for name in ("solute", "solute_refined"))
        beads = beads_of(built)
        back = atoms_on_beads(built, beads, beads.place(built.position), given.threads).position - built.position
        dna = (beads.partner >= 0)[built.atom_residue]
        trip.row(array, int(np.sum(beads.partner >= 0)) // 2, rms(back[dna]),
                 float(np.linalg.norm(back[dna], axis=1).max()), float(np.abs(back[~dna]).max()))
        size.row(array, built.n_atoms, beads.n, memory.largest / 1e9)
        clashes = chromabuild(folder, "clash", *wanted)["summary"]
        plain = chromabuild(folder, "clash", "check", "results/solute.h5")
        sound.row(array, told["moved_rms_angstrom"], told["dna_off_rms_angstrom"], told["proteins_off_rms_angstrom"],
                  open_pairs(built, beads), open_pairs(refined, beads), plain["fatal"], clashes["pairs_before"],
                  clashes["pairs_after"])
    benchmark.finish()


if __name__ == "__main__":
    main()
