"""Real files of every format, harmed at random, given to their readers: a reader refuses in a sentence, or takes all.

Readers work in forked processes, so that one that crashes or hangs is noticed. Where a format has records that can be
counted without the reader, a file that is accepted must have as many as the reader says: nothing is lost in silence.
"""

import collections
import contextlib
import gzip
import json
import mmap
import os
import random
import resource
import signal
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HANG_SECONDS = 10
MEMORY = 12 * 2**30
INSERTED = (b"-", b"nan", b"1e400", b"9" * 30, b"*", b"\t", b"\n", b"\r\n", b"\xff\xfe", b"\0")
OUTCOMES = ("read", "refused", "traceback", "hang", "crash", "loss")


@dataclass(frozen=True)
class Reader:
    """A format: a file of it, what reads it and gives how many records there are (or None), and another who counts."""

    name: str
    content: bytes
    suffix: str
    read: Callable[[Path], int | None]
    count: Callable[[bytes], int] | None = None
    share: float = 1.0
    """Of the trials that a file of its size gets: less where a reader starts a process for each file."""


def mutated(content: bytes, rng: random.Random) -> bytes:
    """A copy with one to four faults of the kinds that disks, transfers and hands make."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        n = len(data)
        if n == 0:
            break
        at, span = rng.randrange(n), rng.choice((1, 2, 8, 64, 512))
        kind = rng.randrange(10)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.randrange(256)
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at:at + span]
        elif kind == 4:
            data[at:at] = data[at:at + span]
        elif kind == 5:
            data[at:at + span] = bytes(len(data[at:at + span]))
        elif kind == 6:
            data[at:at] = rng.choice(INSERTED)
        elif kind == 7:
            other = rng.randrange(n)
            one, two = bytes(data[at:at + span]), bytes(data[other:other + span])
            data[at:at + span], data[other:other + len(one)] = two, one
        elif kind == 8:
            digits = [k for k, byte in enumerate(data[:200_000]) if 48 <= byte < 58]
            if digits:
                data[rng.choice(digits)] = rng.choice(b"0123456789-.eE+ ")
        else:
            lines = data.split(b"\n")
            k = rng.randrange(len(lines))
            lines[k:k + 1] = rng.choice(([], [lines[k], lines[k]], [lines[k][: len(lines[k]) // 2]]))
            data = bytearray(b"\n".join(lines))
    return bytes(data)


def trial(reader: Reader, seed: int, folder: Path) -> tuple[str, str]:
    """What became of one harmed file, and how it was told."""
    from chromabuild.base.errors import ChromabuildError

    content = mutated(reader.content, random.Random(f"{reader.name} {seed}"))
    path = folder / f"harmed{reader.suffix}"
    path.write_bytes(content)
    signal.alarm(HANG_SECONDS)
    try:
        found = reader.read(path)
    except ChromabuildError as error:
        return "refused", str(error)
    except _HangError:
        return "hang", ""
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        if isinstance(error, ValueError) and "/mesoscale/" in where:  # the command line prints it as a sentence
            return "refused", str(error)
        return "traceback", f"{type(error).__name__}: {error} ({where})"
    finally:
        signal.alarm(0)
    if found is not None and reader.count is not None:
        with contextlib.suppress(ValueError, EOFError, OSError):
            expected = reader.count(content)
            if expected != found:
                return "loss", f"{found} of {expected} records"
    return "read", ""


class _HangError(BaseException):
    pass


def _ring(number: int, frame: object) -> None:
    raise _HangError


def harm(reader: Reader, seeds: range, folder: Path) -> tuple[collections.Counter, dict[str, list[str]]]:
    """Outcomes of harmed files by kind, and examples of those that must not be."""
    counts, examples = collections.Counter(), collections.defaultdict(list)
    shared = mmap.mmap(-1, 16)
    first = seeds.start
    while first < seeds.stop:
        out, into = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(out)
            signal.signal(signal.SIGALRM, _ring)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            with os.fdopen(into, "w") as file:
                for seed in range(first, seeds.stop):
                    shared[:8] = struct.pack("q", seed)
                    outcome, told = trial(reader, seed, folder)
                    file.write(json.dumps([seed, outcome, told if outcome not in ("read", "refused") else ""]) + "\n")
                    file.flush()
            os._exit(0)
        os.close(into)
        with os.fdopen(out) as file:
            for line in file:
                seed, outcome, told = json.loads(line)
                counts[outcome] += 1
                if outcome not in ("read", "refused") and len(examples[outcome]) < 5:
                    examples[outcome].append(f"seed {seed}: {told}")
        _, status = os.waitpid(pid, 0)
        if status == 0:
            break
        seed = struct.unpack("q", shared[:8])[0]
        counts["crash"] += 1
        examples["crash"].append(f"seed {seed}: status {status}")
        first = seed + 1
    return counts, examples


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


def readers(build: Path, fasta: Path, dyads: Path, contacts: Path) -> list[Reader]:
    """Every reader with a file; ``build`` has been through the chain at least to the shards."""
    import numpy as np

    from chromabuild.base.settings import BuildSection, Settings
    from chromabuild.clash.report import ClashReport
    from chromabuild.forcefield.topology_file import Topology
    from chromabuild.genome.bigwig import read_signal
    from chromabuild.genome.bigwig_writer import write_signal
    from chromabuild.genome.contacts import matrix_contacts, read_contacts
    from chromabuild.genome.fasta import read_fasta
    from chromabuild.genome.nucleosomes import read_nucleosomes
    from chromabuild.molecule.solute import Solute
    from chromabuild.molecule.structure_file import StructureFile
    from chromabuild.nucleosome.marks import octamer_recipes
    from chromabuild.pipeline import provenance
    from chromabuild.shards.brick_file import read_brick
    from chromabuild.shards.manifest import Manifest
    from chromabuild.simulate.energy_log import EnergyLog
    from chromabuild.simulate.restart_file import read_restart
    from mesoscale.scaffold import Scaffold

    results = build / "results"
    manifest = Manifest.read(results / "shards")
    structure = Solute.read(results / "solute_clean.h5")
    header, sequence = read_fasta(fasta)
    chromosome = header.split(":")[0].split()[0]
    peaks = "".join(f"{chromosome}\t{100 * k}\t{100 * k + 90}\tp{k}\t{k}\t.\t1.0\t2.0\t-1\t45\n" for k in range(20))
    dyads_of_marks = np.arange(45, 2000, 100)
    marks = "".join(f"{chromosome}\t{100 * k}\t{100 * k + 90}\tH2A.Z\n" for k in range(20))
    write_signal(build / "track.bw", chromosome, 0, np.arange(3000) % 17)
    from chromabuild.export.structure import write_structure

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

    far = 10**9
    return [
        Reader("FASTA", fasta.read_bytes(), ".fa", lambda path: len(read_fasta(path)[1]), _letters),
        Reader("FASTA, gz", gzip.compress(fasta.read_bytes(), mtime=0), ".fa.gz", quiet(read_fasta)),
        Reader("BED of dyads", dyads.read_bytes(), ".bed",
               lambda path: len(read_nucleosomes(path, chromosome, 0, far)), _data_lines),
        Reader("narrowPeak", peaks.encode(), ".narrowPeak",
               lambda path: len(read_nucleosomes(path, chromosome, 0, far)), _data_lines),
        Reader("BED of marks", marks.encode(), ".bed",
               quiet(lambda path: octamer_recipes(BuildSection(marks=str(path)), chromosome, dyads_of_marks))),
        Reader("BEDPE", contacts.read_bytes(), ".bedpe", lambda path: len(read_contacts(path)), _data_lines),
        Reader("bigWig", (build / "track.bw").read_bytes(), ".bw",
               quiet(lambda path: read_signal(path, chromosome, 0, 3000))),
        Reader("settings", (build / "locus.yaml").read_bytes(), ".yaml", quiet(Settings.read)),
        Reader("PDB", texts[".pdb"], ".pdb", atoms, _atom_lines),
        Reader("mmCIF", texts[".cif"], ".cif", quiet(StructureFile.read)),
        *of_build(".cool", "contact_map.cool",
                  lambda path: matrix_contacts(str(path), build_chromosome(results), 0, 3000), share=0.02),
        *of_build("scaffold.h5", "scaffold.h5", Scaffold.read),
        *of_build("solute.h5", "solute.h5", Solute.read),
        *of_build("topology.h5", "topology.h5", Topology.read),
        *of_build("brick", f"shards/{manifest.shards[0].name}.cbb", read_brick),
        *of_build("manifest.json", "shards/manifest.json", in_folder("manifest.json", Manifest.read)),
        *of_build("provenance.json", "provenance.json", in_folder("provenance.json", provenance.read)),
        *of_build("clash report", "clash_report.json", ClashReport.read),
        *of_build("energy log", "md/02-dynamics.log", EnergyLog.read),
        *of_build("restart", "md/restart/02-dynamics_0.rst",
                  lambda path: read_restart(str(path).replace("_0.rst", "_().rst"), manifest.atoms), "_0.rst",
                  0.2),
    ]


def build_chromosome(results: Path) -> str:
    """The chromosome of a build's contact map."""
    from mesoscale.scaffold import Scaffold

    return Scaffold.read(results / "scaffold.h5").chromosome
