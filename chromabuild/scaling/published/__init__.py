"""Measurements of four papers, and the same figures by the simulator.

A module a paper, each with constants(), entries(), claims() and panel().
`python -m chromabuild.scaling.published PAPER` prints and draws them.
"""

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType


@dataclass(frozen=True)
class Paper:
    """`table`: name of its figures in the record; `module`: here."""

    title: str
    table: str
    source: str
    module: str

    def load(self) -> ModuleType:
        return import_module(f"chromabuild.scaling.published.{self.module}")


PAPERS = {
    "eleftheriou": Paper("Eleftheriou et al. 2007: distributed transposes on Blue Gene/L", "Blue Gene/L",
                         "Eleftheriou et al. 2007, tables 1 to 3", "bluegene"),
    "fang": Paper("Fang, Deng and Martyna 2007: 3D FFT on QCDOC", "QCDOC", "Fang et al. 2007, table 1", "qcdoc"),
    "li": Paper("Li et al. 2023: LAMMPS on Fugaku", "Fugaku",
                "Li et al. 2023, figures 6, 12 and 13, table 3", "fugaku"),
    "jung": Paper("Jung et al. 2019: GENESIS on Oakforest-PACS", "GENESIS",
                  "Jung et al. 2019, figures 4 and 5, table 3", "genesis"),
}
"""By first author."""
