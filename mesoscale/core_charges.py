"""The bundled charges of the nucleosome core, fitted by mesoscale/disco.py at six salts, and of its rigid tails."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ANGSTROM = 0.1  # nm
FULL_WRAP = 147  # base pairs of the fitted core


def template(name: str) -> dict:
    """A bundled JSON file: inside the installed package or in the source tree."""
    package = Path(__file__).resolve().parent
    for folder in (package / "templates", package.parent / "templates"):
        if (folder / name).exists():
            return json.loads((folder / name).read_text(encoding="utf-8"))
    raise FileNotFoundError(f"bundled data file {name} is missing: reinstall the package")


def at_salt(salts: list[float], charges: Array, salt: float) -> Array:
    """Charges (s,) at a salt (mol/L) from charges (k, s) at k salts: linear in the square root of the salt, on which
    the screening length depends. Raises ValueError outside the range of the fits.
    """
    if not salts[0] <= salt <= salts[-1]:
        low, high = 1000 * salts[0], 1000 * salts[-1]
        raise ValueError(
            f"salt {1000 * salt:g} mmol/L: the core's charges are known from {low:g} to {high:g} mmol/L; "
            "choose a salt in this range"
        )
    root, at = np.sqrt(salts), np.sqrt(salt)
    k = min(int(np.searchsorted(root, at, side="right")) - 1, len(salts) - 2)
    share = (at - root[k]) / (root[k + 1] - root[k])
    return (1 - share) * charges[k] + share * charges[k + 1]


@cache
def _fitted() -> tuple[list[float], Array, Array, NDArray[np.int64]]:
    data = template("core_charges_1kx5.json")
    rows = np.array(data["sites"])
    return data["salt"], rows[:, :3] * ANGSTROM, rows[:, 3:].T, np.array(data["base_pair"])


def core_charges(salt: float, before: int = FULL_WRAP // 2, after: int = FULL_WRAP // 2, without: Sequence[int] = ()
                 ) -> tuple[Array, Array]:
    """Sites (s, 3) in nm, in the nucleosome's own frame, and charges (s,) of the core without tails.

    Sites that stand for DNA beyond the base pairs `before` and `after` the dyad are left out, and the rows `without`.
    """
    salts, site, charges, base_pair = _fitted()
    dyad = FULL_WRAP // 2
    kept = (base_pair < 0) | ((base_pair >= dyad - before) & (base_pair <= dyad + after))
    kept[list(without)] = False
    return site[kept], at_salt(salts, charges, salt)[kept]


def tail_charge_scale(salt: float) -> float:
    """What the formal charges of tail beads are multiplied with at a salt (mol/L).

    1.12 at 150 mmol/L as published; less at lower salt, where counterions gather on tails as they do on the core, whose
    charges are fitted salt by salt. Raises ValueError as `at_salt` does.
    """
    data = template("tail_beads_1kx5.json")
    return float(at_salt(data["salt"], np.array(data["charge_scale"]), salt))


def tails_of_rigid_sites() -> NDArray[np.int64]:
    """(50,) tail that each of `rigid_tail_sites` is a bead of, in the order of mesoscale.tails.TAILS."""
    tails = template("tail_beads_1kx5.json")["tails"]
    return np.repeat(np.arange(len(tails)), [len(tail["rest"]) for tail in tails])


def rigid_tail_sites(salt: float) -> tuple[Array, Array]:
    """Sites (50, 3) in nm, the beads of tails that lie on their own nucleosome, and their charges (50,) at a salt."""
    tails = template("tail_beads_1kx5.json")["tails"]
    site = np.concatenate([tail["rest"] for tail in tails]) * ANGSTROM
    return site, tail_charge_scale(salt) * np.concatenate([tail["charge"] for tail in tails])
