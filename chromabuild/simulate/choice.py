"""Ranks, threads and what else decides the speed of chromamd and not what it computes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """How chromamd is run, by the keys of its control file."""

    ranks: int
    threads: int
    pme_ranks: int = 0
    fft: str = "MODEL"
    overlap: bool = False
    load_balance: bool = False

    def comm(self) -> dict[str, object]:
        """Section [COMM] of the control file; what is not there is as the engine has it."""
        return {key: value for key, value in (("pme_ranks", self.pme_ranks or None), ("overlap", self.overlap or None),
                                              ("fft", self.fft if self.fft != "MODEL" else None)) if value}

    @property
    def domains(self) -> int:
        """Ranks that have atoms, and so restart files."""
        return self.ranks - self.pme_ranks

    def __str__(self) -> str:
        counted = [f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in ((self.ranks, "rank"), (self.threads, "thread"))]
        more = [f"{self.pme_ranks} of them for reciprocal space" if self.pme_ranks else "",
                f"FFT {self.fft.lower()}" if self.fft != "MODEL" else "", "overlap" if self.overlap else "",
                "load balance" if self.load_balance else ""]
        return ", ".join([" of ".join(counted), *filter(None, more)])
