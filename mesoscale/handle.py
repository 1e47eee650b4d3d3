"""Ownership of an object that lives in a Fortran kernel."""

from collections.abc import Callable


class Handle:
    """The number by which a kernel knows an object of its own; the object is freed with the last reference to this."""

    def __init__(self, number: int, free: Callable[[int], None], name: str) -> None:
        """``free`` takes the number; ``name`` says in messages what it stands for."""
        self._number, self._free, self._name = int(number), free, name

    @property
    def number(self) -> int:
        """What the kernel's procedures take. Raises ValueError once the object is freed."""
        if self._number == 0:
            raise ValueError(f"the {self._name} was closed and can no longer be used: make a new one")
        return self._number

    def close(self) -> None:
        """Free the object now; a second time does nothing."""
        number, self._number = self._number, 0
        if number:
            self._free(number)

    def __del__(self) -> None:
        if getattr(self, "_number", 0):
            self.close()
