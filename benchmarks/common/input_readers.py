"""A real file of every format that is read, its reader, and where records can be counted without it, who counts."""

import gzip
import subprocess
from collections.abc import Callable
from pathlib import Path

from common.mutated_inputs import Reader


def _data_lines(content: bytes) -> int:
    """Lines of a BED-like file that are neither empty nor comments."""
    lines = content.decode("utf-8").split("\n")
    return sum(bool(line.strip()) and not line.startswith(("#", "track", "browser")) for line in lines)


def _letters(content: bytes) -> int:
    """Letters of a FASTA file of one record."""
    return sum(len("".join(line.split())) for line in content.decode("utf-8").split("\n") if not line.startswith(">"))


def _atom_lines(content: bytes) -> int:
    """Atoms of the first model of a PDB file."""
    lines = content.decode("ascii", "replace").replace("\r\n", "\n").split("\n")
    end = next((k for k, line in enumerate(lines) if line.startswith("ENDMDL")), len(lines))
    return sum(line.startswith(("ATOM  ", "HETATM")) for line in lines[:end])


def readers(build: Path, repository: Path) -> list[Reader]:
    """Every reader with a file; ``build`` has been through the chain at least to the shards."""
    import numpy as np

    from chromabuild.analysis.trajectory_file import check_length
    from chromabuild.base.errors import BadInputError
    from chromabuild.base.settings import BuildSection, Settings
    from chromabuild.clash.report import ClashReport
    from chromabuild.export.structure import write_structure
    from chromabuild.forcefield.topology_file import Topology
    from chromabuild.genome.bigwig import read_signal
    from chromabuild.genome.bigwig_writer import write_signal
    from chromabuild.genome.contacts import matrix_contacts, read_contacts
    from chromabuild.genome.fasta import read_fasta, read_region
    from chromabuild.genome.methylation import read_methylation
    from chromabuild.genome.nucleosomes import read_nucleosomes
    from chromabuild.genome.region import Region
    from chromabuild.molecule.solute import Solute
    from chromabuild.molecule.structure_file import StructureFile
    from chromabuild.nucleosome.marks import octamer_recipes
    from chromabuild.pipeline import provenance
    from chromabuild.shards.brick_file import read_brick
    from chromabuild.shards.manifest import Manifest
    from chromabuild.simulate.energy_log import EnergyLog
    from chromabuild.simulate.executable import executable
    from chromabuild.simulate.restart_file import read_restart
    from mesoscale.scaffold import Scaffold

    results = build / "results"
    manifest = Manifest.read(results / "shards")
    structure = Solute.read(results / "solute_clean.h5")
    fasta, dyads = (repository / "workflows" / "config" / "loci" / name for name in ("demo.fa", "demo.dyads.bed"))
    header, sequence = read_fasta(fasta)
    chromosome = header.split(":")[0].split()[0]
    peaks = "".join(f"{chromosome}\t{100 * k}\t{100 * k + 90}\tp{k}\t{k}\t.\t1.0\t2.0\t-1\t45\n" for k in range(20))
    dyads_of_marks = np.arange(45, 2000, 100)
    marks = "".join(f"{chromosome}\t{100 * k}\t{100 * k + 90}\tH2A.Z\n" for k in range(20))
    write_signal(build / "track.bw", chromosome, 0, np.arange(3000) % 17)
    texts = {}
    for suffix in (".pdb", ".cif"):
        write_structure(structure, build / f"solute{suffix}", "duplex")
        texts[suffix] = (build / f"solute{suffix}").read_bytes()

    def atoms(path: Path) -> int:
        found = StructureFile.read(path)
        return len(found.position) + found.alternatives

    def in_folder(name: str, read: Callable[[Path], object]) -> Callable[[Path], None]:
        def inner(path: Path) -> None:
            folder = path.parent / "folder"
            folder.mkdir(exist_ok=True)
            (folder / name).write_bytes(path.read_bytes())
            read(folder)

        return inner

    def quiet(read: Callable[[Path], object]) -> Callable[[Path], None]:
        def inner(path: Path) -> None:
            read(path)

        return inner

    def of_build(name: str, file: str, read: Callable[[Path], object], suffix: str = "",
                 share: float = 1.0) -> list[Reader]:
        """None where the build was not taken so far."""
        path = results / file
        if not path.exists():
            return []
        return [Reader(name, path.read_bytes(), suffix or path.suffix, quiet(read), share=share)]

    genome = b">chrI first\n" + b"ACGTTGCATG\n" * 40 + f">{chromosome}\n{sequence * 3}\n".encode() + b">chrM\nAC\n"
    place = Region(chromosome, 100, 400)
    methyl = "".join(f"{chromosome}\t{k}\t{k + 1}\tm\t9\t+\t{k}\t{k + 1}\t0,0,0\t9\t50.0\n"
                     for k, letter in enumerate(sequence[:600]) if letter == "C")
    contacts = "".join(f"{chromosome}\t{k}\t{k + 50}\t{chromosome}\t{k + 300}\t{k + 350}\tc{k}\t1.5\n"
                       for k in range(0, 200, 20))

    def of_engine(command: str) -> Callable[[Path], None]:
        """`chromamd COMMAND FILE` in a process, which names what is wrong and ends with a code of its own."""
        def inner(path: Path) -> None:
            done = subprocess.run([executable(), command, path], capture_output=True, text=True, errors="replace")
            told = done.stdout + done.stderr
            if not 0 <= done.returncode <= 8 or "Backtrace" in told or (done.returncode and path.name not in told):
                raise RuntimeError(f"chromamd {command} ended with {done.returncode}: {told[-200:]}")
            if done.returncode:
                raise BadInputError(told)

        return inner

    far = 10**9
    return [
        Reader("FASTA", fasta.read_bytes(), ".fa", lambda path: len(read_fasta(path)[1]), _letters),
        Reader("FASTA, gz", gzip.compress(fasta.read_bytes(), mtime=0), ".fa.gz", quiet(read_fasta)),
        Reader("FASTA of a genome", genome, ".fa", lambda path: len(read_region(path, place)[1]), lambda _: 300),
        Reader("BED of dyads", dyads.read_bytes(), ".bed",
               lambda path: len(read_nucleosomes(path, chromosome, 0, far)), _data_lines),
        Reader("narrowPeak", peaks.encode(), ".narrowPeak",
               lambda path: len(read_nucleosomes(path, chromosome, 0, far)), _data_lines),
        Reader("BED of marks", marks.encode(), ".bed",
               quiet(lambda path: octamer_recipes(BuildSection(marks=str(path)), chromosome, dyads_of_marks))),
        Reader("bedMethyl", methyl.encode(), ".bed",
               quiet(lambda path: read_methylation(path, chromosome, 0, sequence))),
        Reader("BEDPE", contacts.encode(), ".bedpe", lambda path: len(read_contacts(path)), _data_lines),
        Reader("bigWig", (build / "track.bw").read_bytes(), ".bw",
               quiet(lambda path: read_signal(path, chromosome, 0, 3000))),
        Reader("settings", (build / "locus.yaml").read_bytes(), ".yaml", quiet(Settings.read)),
        Reader("PDB", texts[".pdb"], ".pdb", atoms, _atom_lines),
        Reader("mmCIF", texts[".cif"], ".cif", quiet(StructureFile.read)),
        *of_build(".cool", "contact_map.cool",
                  lambda path: matrix_contacts(str(path), build_chromosome(results), 0, 3000), share=0.002),
        *of_build("scaffold.h5", "scaffold.h5", Scaffold.read),
        *of_build("solute.h5", "solute.h5", Solute.read),
        *of_build("topology.h5", "topology.h5", Topology.read),
        *of_build("brick", f"shards/{manifest.shards[0].name}.cbb", read_brick),
        *of_build("manifest.json", "shards/manifest.json", in_folder("manifest.json", Manifest.read)),
        *of_build("provenance.json", "provenance.json", in_folder("provenance.json", provenance.read)),
        *of_build("clash report", "clash_report.json", ClashReport.read),
        *of_build("energy log", "md/02-dynamics.log", EnergyLog.read),
        *of_build("restart", "md/restart/02-dynamics_0.rst",
                  lambda path: read_restart(str(path).replace("_0.rst", "_().rst"), manifest.atoms), "_0.rst", 0.2),
        *of_build("DCD, its header", "md/02-dynamics.dcd", check_length, share=0.2),
        *of_build("control file, by chromamd", "md/02-dynamics.inp", of_engine("check"), share=0.01),
        *of_build("restart, by chromamd", "md/restart/02-dynamics_0.rst", of_engine("verify"), share=0.01),
    ]


def build_chromosome(results: Path) -> str:
    """The chromosome of a build's contact map."""
    from mesoscale.scaffold import Scaffold

    return Scaffold.read(results / "scaffold.h5").chromosome
