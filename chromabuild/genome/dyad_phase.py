"""Do mapped dyads fit the sequence?

Where DNA bends around a core its minor groove faces the core every ten base pairs, and there AA, AT, TA and TT (WW) are
frequent: half a turn on either side of the dyad, and on from there (Satchwell, Drew & Travers, J. Mol. Biol. 191:659,
1986). Dyads of another assembly, or counted from another base, show that signal shifted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

PERIOD = 10.2
"""Base pairs; the mean of a nucleosome, at which the signal of 468 chemically mapped dyads of yeast is strongest."""
REACH = 65
"""Base pairs on either side of the dyad that are looked at."""
ENOUGH, MANY = 50, 200
"""Dyads from which on a shift, and the lack of any signal, mean something: the signal of 50, 100 and 200 precise dyads
is 4.3, 5.8 and 8.2 times its error."""
CLEAR, LOST = 4.0, 3.0
"""Signal over error of a phase that can be told, and of one that is not there: dyads anywhere are above 3 once in 8,000
times, exp(-9)."""
LEAST_SHIFT = 0.75
"""Base pairs; less is the scatter of good maps."""


@dataclass(frozen=True)
class DyadPhase:
    """The signal of WW dinucleotides around dyads."""

    dyads: int
    strength: float
    """Amplitude over its standard error."""
    shift: float
    """Base pairs by which the dyads lie too far to the right, up to whole turns: -5.1 to 5.1."""

    @property
    def error(self) -> float:
        """Standard error of the shift, base pairs."""
        return PERIOD / (2 * np.pi) / max(self.strength, 1e-9)

    @property
    def warning(self) -> str | None:
        """What is wrong with the dyads, in a sentence; None where nothing is, or where they are too few to tell."""
        if self.dyads >= ENOUGH and self.strength >= CLEAR and abs(self.shift) > max(LEAST_SHIFT, 3 * self.error):
            side = "right" if self.shift > 0 else "left"
            return (f"the WW dinucleotides around {self.dyads} dyads say that these lie {abs(self.shift):.1f} bp too "
                    f"far to the {side} (up to whole turns of {PERIOD} bp): are nucleosomes and sequence of the same "
                    "assembly, and positions counted from 0?")
        if self.dyads >= MANY and self.strength < LOST:
            return (f"the sequence around {self.dyads} dyads has none of the periodic WW dinucleotides of nucleosomes: "
                    "either dyads are known to no better than 5 bp, or nucleosomes and sequence are of different "
                    "assemblies")
        return None


def dyad_phase(sequence: str, dyads: Sequence[int]) -> DyadPhase:
    """The phase of ``dyads``, indices into the sequence.

    Those within 66 bp of an end are left out, and of equal stretches all but one: repeats tell nothing more.
    """
    letters = np.frombuffer(sequence.encode("ascii"), np.uint8)
    weak = np.isin(letters, np.frombuffer(b"AT", np.uint8))
    place = np.arange(-REACH, REACH)  # of the first base of a dinucleotide, whose middle is half a base pair on
    inside = np.array([dyad for dyad in dyads if REACH < dyad < len(sequence) - REACH - 1], dtype=int)
    around = np.unique(weak[inside[:, None] + np.arange(-REACH, REACH + 1)], axis=0)
    if len(around) < 2:
        return DyadPhase(len(around), 0.0, 0.0)
    wave = np.exp(2j * np.pi * (place + 0.5) / PERIOD)
    of_each = (around[:, :-1] & around[:, 1:]) @ (wave - wave.mean())
    signal = of_each.mean()
    error = np.sqrt((np.abs(of_each - signal) ** 2).mean() / len(around))
    turned = np.angle(-signal) / (2 * np.pi) * PERIOD  # where the signal lies beside that of precise dyads
    return DyadPhase(len(around), float(abs(signal) / error) if error > 0 else 0.0, float(-turned))
