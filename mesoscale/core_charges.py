"""The bundled charges of nucleosome cores, fitted by mesoscale/disco.py at six salts, and of their rigid tails."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ANGSTROM = 0.1  # nm
FULL_WRAP = 147  # base pairs of the fitted core
USUAL = "xenopus"  # the core of 1KX5 among those bundled


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
def _table() -> dict:
    return template("core_charges.json")


def bundled_cores() -> tuple[str, ...]:
    """Names of the cores whose charges are bundled: species, then variants."""
    return tuple(_table()["cores"])


def core_sites() -> Array:
    """Sites (s, 3) of the core's charges in nm, in the nucleosome's own frame; the same for all cores."""
    return np.array(_table()["sites"]) * ANGSTROM


@cache
def bundled_charges(name: str, salt: float) -> tuple[Array, int, float]:
    """Charges (s,) of a bundled core at a salt (mol/L), the charge of its atoms, and the largest mean relative error of
    the field at the salts of its fits. Raises ValueError as `at_salt` does.

    The core of 1KX5 has fits at six salts. Others have two, and are that core plus a difference that is linear in the
    square root of the salt.
    """
    usual, core = (_table()["cores"][one] for one in (USUAL, name))
    charge = at_salt(usual["salt"], np.array(usual["charge"]), salt)
    if name != USUAL:
        rows = [usual["salt"].index(one) for one in core["salt"]]
        low, high = np.array(core["charge"]) - np.array(usual["charge"])[rows]
        share = (np.sqrt(salt) - np.sqrt(core["salt"][0])) / np.ptp(np.sqrt(core["salt"]))
        charge = charge + (1 - share) * low + share * high
    return charge, core["atomic_charge"], max(core["mean_field_error"])


def core_charges(salt: float, before: int = FULL_WRAP // 2, after: int = FULL_WRAP // 2, without: Sequence[int] = (),
                 charges: Sequence[float] = ()) -> tuple[Array, Array]:
    """Sites (s, 3) in nm, in the nucleosome's own frame, and charges (s,) of the core without tails.

    `charges` are those of the 300 sites, at that salt; default those of the core of 1KX5. Sites that stand for DNA
    beyond the base pairs `before` and `after` the dyad are left out, and the rows `without`.
    """
    base_pair, dyad = np.array(_table()["base_pair"]), FULL_WRAP // 2
    kept = (base_pair < 0) | ((base_pair >= dyad - before) & (base_pair <= dyad + after))
    kept[list(without)] = False
    charge = np.array(charges) if len(charges) else bundled_charges(USUAL, salt)[0]
    return core_sites()[kept], charge[kept]


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


def rigid_tail_sites(salt: float, change: Sequence[float] = ()) -> tuple[Array, Array]:
    """Sites (50, 3) in nm, the beads of tails that lie on their own nucleosome, and their charges (50,) at a salt.

    `change` (50,) is added to the formal charges.
    """
    tails = template("tail_beads_1kx5.json")["tails"]
    site = np.concatenate([tail["rest"] for tail in tails]) * ANGSTROM
    formal = np.concatenate([tail["charge"] for tail in tails]) + (np.array(change) if len(change) else 0.0)
    return site, tail_charge_scale(salt) * formal
