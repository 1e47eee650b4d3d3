"""How many records of an input file are used, where it is not all of them."""

from pathlib import Path


class RecordsUsed(dict[str, tuple[int, int]]):
    """File to (records that are used, records that it holds)."""

    def count(self, path: str | Path, used: int, held: int) -> None:
        """Note the records of one file."""
        self[Path(path).name] = (used, held)

    def partly(self) -> dict[str, str]:
        """``n of m`` for the files of which some records are left out.

        >>> used = RecordsUsed()
        >>> used.count("peaks/H3K27ac.narrowPeak", 12, 4031)
        >>> used.partly()
        {'H3K27ac.narrowPeak': '12 of 4031'}
        """
        return {name: f"{used} of {held}" for name, (used, held) in self.items() if used < held}
