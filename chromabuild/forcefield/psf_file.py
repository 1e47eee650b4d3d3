"""CHARMM's psf as columns: the molecules of one that are alike, and a psf with one of each kind.

Sections: "CHARMM structure files", Theoretical and Computational Biophysics Group, University of Illinois; words are
separated by blanks, as OpenMM reads them.
"""

import re
from array import array
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.forcefield.molecule_kinds import Kinds, Residues, find_kinds

_TITLE = re.compile(r"^\s*(\d+)(?:\s+(\d+))?\s*!([A-Z0-9]+)")
_TERMS = {"NBOND": (2, 8), "NTHETA": (3, 9), "NPHI": (4, 8), "NIMPHI": (4, 8), "NCRTERM": (8, 8)}
"""Atoms of a term, and numbers a line."""
_REFUSED = {"DRUDE": "Drude particles"}
_LINES = 1 << 16


class Psf:
    """Atoms, residues and terms of a psf. Raises BadInputError for one that is damaged or cut short."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.kind_of_atom = array("i")
        """Number of what a line says behind the residue's number, by the first such line."""
        self.texts: list[str] = []
        """These."""
        self.terms: dict[str, np.ndarray] = {name: np.empty((0, width), np.int64)
                                             for name, (width, _) in _TERMS.items()}
        self.lone_pairs: list[str] = []
        """Lines of lone pairs, and (p, 4) atoms, of colinear ones the last -1."""
        self.lone_pair_atoms = np.empty((0, 4), np.int64)
        with open(path, encoding="utf-8", errors="replace") as file:
            self.first_line = file.readline()
            for word, what in _REFUSED.items():
                if word in self.first_line.split():
                    raise BadInputError(f"{path} has {what}, which the engine does not have: use a force field without")
            for line in file:
                found = _TITLE.match(line)
                if found is None:
                    continue
                count, more, name = int(found[1]), found[2], found[3]
                if name == "NATOM":
                    self._read_atoms(file, count)
                elif name in _TERMS:
                    width, per_line = _TERMS[name]
                    self.terms[name] = self._numbers(file, width * count, per_line, name).reshape(-1, width) - 1
                elif name == "NUMLP" and count:
                    self._read_lone_pairs(file, count, int(more or 0))
        if not self.kind_of_atom:
            raise BadInputError(f"{path} has no atoms: it is cut short, write it again")
        for name, atoms in self.terms.items():
            if len(atoms) and not 0 <= atoms.min() <= atoms.max() < self.n_atoms:
                raise BadInputError(f"{path}: !{name} names an atom that is not there: it is damaged, write it again")

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return len(self.kind_of_atom)

    def _read_atoms(self, file: TextIO, n: int) -> None:
        known: dict[str, int] = {}
        starts, numbers, segids = array("q"), array("q"), []
        before = ("", "", "")
        k = 0
        while k < n:
            lines = list(islice(file, min(_LINES, n - k)))
            for line in lines:
                words = line.split(None, 3)
                text = words[-1].rstrip() if words else ""
                kind = known.get(text)
                if kind is None:
                    if len(words) < 4 or len(text.split(None, 5)) < 5:
                        raise BadInputError(f"{self.path} ends after {k:,} of {n:,} atoms, or the line of atom "
                                            f"{k + 1:,} has too few words: it is cut short, write it again")
                    kind = known[text] = len(known)
                self.kind_of_atom.append(kind)
                label = words[1], words[2], text.split(None, 1)[0]
                if label != before:
                    before = label
                    found = re.match(r"-?\d+", words[2])
                    if found is None:
                        raise BadInputError(f"{self.path}: the residue of atom {k + 1:,} has the number {words[2]!r}: "
                                            "it is damaged, write it again")
                    starts.append(k)
                    numbers.append(int(found[0]))
                    segids.append(words[1][:4].encode("ascii", "replace"))
                k += 1
            if not lines:
                raise BadInputError(f"{self.path} ends after {k:,} of {n:,} atoms: it is cut short, write it again")
        self.texts = list(known)
        self.residues = Residues(np.append(np.frombuffer(starts, np.int64), n), np.frombuffer(numbers, np.int64),
                                 np.array(segids, dtype="S4"))

    def _numbers(self, file: TextIO, n: int, per_line: int, name: str) -> np.ndarray:
        """(n,) numbers of the lines that follow."""
        left = -(-n // per_line)
        pieces = [np.empty(0, np.int64)]
        try:
            while lines := list(islice(file, min(_LINES, left))):
                left -= len(lines)
                pieces.append(np.array("".join(lines).split(), dtype=np.int64) if n < _LINES else
                              np.fromstring("".join(lines), dtype=np.int64, sep=" "))
            values = np.concatenate(pieces)
        except ValueError:
            values = np.empty(0)
        if len(values) != n:
            raise BadInputError(f"{self.path}: !{name} has {len(values):,} numbers and not {n:,}: it is cut short, "
                                "write it again")
        return values

    def _read_lone_pairs(self, file: TextIO, n: int, n_hosts: int) -> None:
        self.lone_pairs = [line.rstrip() for line in islice(file, n)]
        hosts = self._numbers(file, n_hosts, 8, "NUMLP") - 1
        try:
            sizes = np.array([int(line.split(None, 1)[0]) for line in self.lone_pairs]) + 1
            if len(sizes) != n or sizes.sum() != n_hosts or set(sizes.tolist()) - {3, 4}:
                raise ValueError
        except (ValueError, IndexError):
            raise BadInputError(f"{self.path}: !NUMLP has lone pairs of a form that is not known: write it with CHARMM "
                                "or CHARMM-GUI") from None
        starts = np.cumsum(sizes) - sizes
        self.lone_pair_atoms = np.full((n, 4), -1)
        for column in range(4):
            there = sizes > column
            self.lone_pair_atoms[there, column] = hosts[starts[there] + column]


def kinds_of(psf: Psf) -> Kinds:
    """Molecules that are alike."""
    texts: dict[str, int] = {}
    lone_pairs = [texts.setdefault(" ".join(words[2:]), len(texts)) for words in map(str.split, psf.lone_pairs)]
    hosts = np.where(psf.lone_pair_atoms < 0, psf.lone_pair_atoms[:, :1], psf.lone_pair_atoms)
    terms = [(atoms, None) for atoms in psf.terms.values()]
    return find_kinds(psf.residues, [np.frombuffer(psf.kind_of_atom, np.int32)],
                      [*terms, (hosts, np.array(lone_pairs, dtype=np.int64))])


def write_examples(psf: Psf, kinds: Kinds, path: Path) -> None:
    """Write a psf with the first molecule of each kind alone; residues are counted from 1."""
    chosen = kinds.chosen
    new = np.cumsum(chosen) - 1
    atoms = np.flatnonzero(chosen)
    residue = np.searchsorted(psf.residues.first_atom, atoms, side="right") - 1
    _, counted = np.unique(residue, return_inverse=True)
    segid = np.char.decode(psf.residues.segid[residue]).tolist()
    lines = [psf.first_line.rstrip(), "", f"{1:10d} !NTITLE", "* one molecule of each kind", "",
             f"{len(atoms):10d} !NATOM"]
    lines += [f"{k:10d} {own:<8s} {number + 1:<8d} {psf.texts[psf.kind_of_atom[atom]]}"
              for k, (atom, own, number) in enumerate(zip(atoms.tolist(), segid, counted.tolist(), strict=True), 1)]

    def section(title: str, count: int, numbers: np.ndarray, per_line: int) -> list[str]:
        text = [f"{number:10d}" for number in numbers.ravel().tolist()]
        return ["", f"{count:10d} !{title}", *("".join(text[k:k + per_line]) for k in range(0, len(text), per_line))]

    for name, (_, per_line) in _TERMS.items():
        if name != "NCRTERM":
            rows = _renumbered(psf.terms[name], chosen, new)
            lines += section(name, len(rows), rows, per_line)
    for name in ("NDON", "NACC"):
        lines += section(name, 0, np.empty(0), 8)
    lines += section("NNB", 0, np.zeros(len(atoms), dtype=int), 8)
    lines += ["", f"{1:10d}{0:10d} !NGRP NST2", f"{0:10d}{0:10d}{0:10d}"]
    kept = np.flatnonzero(chosen[psf.lone_pair_atoms[:, 0]]) if len(psf.lone_pairs) else np.empty(0, dtype=int)
    if len(kept):
        hosts = psf.lone_pair_atoms[kept]
        sizes = (hosts >= 0).sum(axis=1)
        lines += ["", f"{len(kept):10d}{sizes.sum():10d} !NUMLP NUMLPH"]
        starts = np.cumsum(sizes) - sizes + 1
        for k, start in zip(kept.tolist(), starts.tolist(), strict=True):
            words = psf.lone_pairs[k].split()
            lines.append(f"{words[0]:>10s}{start:10d}   {'  '.join(words[2:])}")
        text = [f"{number:10d}" for number in (new[hosts[hosts >= 0]] + 1).tolist()]
        lines += ["".join(text[k:k + 8]) for k in range(0, len(text), 8)]
    rows = _renumbered(psf.terms["NCRTERM"], chosen, new)
    if len(rows):
        lines += section("NCRTERM: cross-terms", len(rows), rows, 8)
    path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")


def _renumbered(atoms: np.ndarray, chosen: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Terms of chosen atoms, counted from 1 among these."""
    return new[atoms[chosen[atoms[:, 0]]]] + 1
