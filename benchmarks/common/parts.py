"""Restart files that processes of `chromamd setup` make in parts."""

from pathlib import Path

import numpy as np

from chromabuild.simulate import chromamd
from chromabuild.simulate.executable import executable
from chromabuild.simulate.restart_head import HEAD, LEANING, MAGIC, WORDS
from common.timing import Usage, measured

Grid = tuple[int, int, int]


def control(file: Path, topology: Path, source: Path, target: Path, grid: Grid,
            part: tuple[int, int] | None = None) -> Path:
    """A control file for ``chromamd setup``; ``source`` is a list of bricks or a pattern of restart files."""
    output: dict[str, object] = {"rstfile": target}
    if part is not None:
        output["setup_domains"] = f"{part[0]}-{part[1]}"
    chromamd.write_control(file, {
        "INPUT": {"topologyfile": topology, "rstfile" if "()" in str(source) else "shardfile": source},
        "OUTPUT": output, "BOUNDARY": dict(zip(("domain_x", "domain_y", "domain_z"), grid, strict=True))})
    return file


def set_up(file: Path) -> Usage:
    """``chromamd setup`` in one process."""
    return measured([executable(), "setup", file], file.with_suffix(".out"))


def verify(paths: list[Path], folder: Path) -> Usage:
    """``chromamd verify`` of all files, some hundred at a time."""
    listed = folder / "files.txt"
    listed.write_text("\n".join(map(str, paths)))
    return measured(["sh", "-c", 'xargs -n 512 "$0" verify < "$1" > "$2"', executable(), listed, folder / "verified"],
                    folder / "verify.out")


def atoms_of(path: Path) -> np.ndarray:
    """How many atoms a file holds, the sum of their numbers and that of their squares, modulo 2^64."""
    with path.open("rb") as file:
        words = np.frombuffer(file.read(HEAD), "<i8", WORDS, len(MAGIC))
        file.seek(HEAD + (24 if words[0] == LEANING else 0))
        number = np.fromfile(file, "<i8", int(words[6])).astype(np.uint64)
    return np.array([len(number), number.sum(), (number * number).sum()], dtype=np.uint64)
