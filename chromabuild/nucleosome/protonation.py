"""Histidines by their pKa at a pH: PROPKA 3 (Olsson et al., J. Chem. Theory Comput. 7:525, 2011), an optional package.

A histidine whose pKa lies above the pH is doubly protonated; the others keep the tautomer of their hydrogen bonds.
PROPKA sees the histones without DNA, which its model lacks, and modified residues without their side chains. Other side
chains that the pH finds in an unusual state are named, not built.
"""

import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import gemmi

from chromabuild.base.errors import BadInputError
from chromabuild.molecule.residues import modifications, residue_library

if TYPE_CHECKING:
    from chromabuild.nucleosome.homology import Residue

HISTIDINES = ("HID", "HIE", "HIP")
CHARGED = "HIP"
ACIDS, BASES = ("ASP", "GLU", "CYS", "TYR"), ("LYS", "ARG")
_BACKBONE = ("N", "CA", "C", "O", "CB")

Pkas = dict[tuple[int, int], tuple[str, float]]
"""By chain and residue number of a titratable side chain its residue (PDB name) and pKa."""


def pka_values(chains: "Sequence[Sequence[Residue]]") -> Pkas:
    """PROPKA's pKa of the side chains of some chains (heavy atoms). Raises BadInputError where PROPKA is missing."""
    structure, model = gemmi.Structure(), gemmi.Model(1)
    for number, residues in enumerate(chains):
        chain = gemmi.Chain(chr(ord("A") + number))
        for one in residues:
            entry, changed = residue_library()[one.name], one.name in modifications()
            residue = gemmi.Residue()
            residue.name, residue.seqid = "ALA" if changed else entry.pdb_name, gemmi.SeqId(str(one.number))
            residue.het_flag = "A"
            for name, element in zip(entry.atoms, entry.elements, strict=True):
                if name in one.atoms and (not changed or name in _BACKBONE):
                    atom = gemmi.Atom()
                    atom.name, atom.element = name, gemmi.Element(element)
                    atom.pos = gemmi.Position(*one.atoms[name])
                    residue.add_atom(atom)
            chain.add_residue(residue)
        model.add_chain(chain)
    structure.add_model(model)
    return dict(_propka(structure.make_pdb_string()))


@cache
def _propka(text: str) -> tuple[tuple[tuple[int, int], tuple[str, float]], ...]:
    """The values of a PDB file's text; the same text is calculated once."""
    try:
        from propka.run import single
    except ImportError:
        raise BadInputError("build.ph needs the package propka: install it (pip install 'chromabuild[protonation]'), "
                            "or leave build.ph empty") from None
    with TemporaryDirectory() as folder:
        path = Path(folder) / "histones.pdb"
        path.write_text(text)
        found = single(str(path), optargs=["--quiet"], stream=io.StringIO(text), write_pka=False)
    groups = [one for one in found.conformations["AVR"].get_titratable_groups()
              if one.residue_type in ("HIS", *ACIDS, *BASES)]
    return tuple(sorted(((ord(one.atom.chain_id) - ord("A"), one.atom.res_num), (one.residue_type, one.pka_value))
                        for one in groups))


def protonate(chains: "Sequence[Sequence[Residue]]", pkas: Pkas, ph: float) -> None:
    """Name the histidines of some chains, which are changed, for their state at a pH; ties count as neutral."""
    for number, residues in enumerate(chains):
        for one in residues:
            if one.name in HISTIDINES and (number, one.number) in pkas:
                if pkas[number, one.number][1] > ph:
                    one.name = CHARGED
                elif one.name == CHARGED:
                    one.name = "HIE"


def unusual(pkas: Pkas, ph: float, histones: Sequence[str]) -> list[str]:
    """Acids that are protonated and bases that are not at a pH, which the build leaves as they usually are."""
    return [f"{histones[chain]} {name.title()}{number} (pKa {pka:.1f})"
            for (chain, number), (name, pka) in sorted(pkas.items())
            if (name in ACIDS[:2] and pka > ph) or (name in (*ACIDS[2:], *BASES) and pka < ph)]
