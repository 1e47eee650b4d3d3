"""Rigid cores of a fibre: nucleosomes whole, partly unwrapped or without a dimer, and other proteins on DNA; nm."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mesoscale.core_charges import (
    FULL_WRAP,
    core_charges,
    rigid_tail_sites,
    tail_charge_scale,
    tails_of_rigid_sites,
    template,
)
from mesoscale.fibre import Body, Fibre, MissingDimer

Array = NDArray[np.float64]

MIDDLE = (FULL_WRAP - 1) // 2
ARM = 10  # base pairs beyond either end of 1KX5's path that a linker histone holds
SPHERE_SPACING = 3  # base pairs between the floor spheres along wrapped DNA
# Spheres every 3 bp (1.02 nm) of this excess radius keep two axes apart by at least twice the nominal radius also when
# the spheres of the two are staggered: (2 (1.1 + 0.03))^2 - 0.51^2 >= 2.2^2.
STAGGER = 0.03
OCTAMER_BALL = 2.6  # nm; fits between the two gyres' faces and fills the bore
CORE_BALLS = (4.2, 3.3)  # nm; the radius of the superhelix, and what leaves room for linkers to leave
HALF_TURN = 5  # base pairs
NEAR_JOINT = 12  # base pairs of wrapped DNA that a linker, being their continuation, may come close to
LEAVING = 3.0  # nm of a linker's beginning on which it may come close to the protein that it leaves


@dataclass(frozen=True)
class Core:
    """A rigid core in its own frame, nm.

    joint_point (2, 3) and joint_frame (2, 3, 3): where DNA leaves (0) and arrives (1); frame columns are the helix axis
    and two normals. site (s, 3) with site_charge (s,). sphere (k, 3) with sphere_radius (k,): what nothing may
    enter; sphere_near (k, 2): wrapped DNA next to the exit and to the entry, and whatever touches it there: the linker
    that continues it ignores these.
    """

    joint_point: Array
    joint_frame: Array
    site: Array
    site_charge: Array
    sphere: Array
    sphere_radius: Array
    sphere_near: NDArray[np.int32]
    is_nucleosome: bool = True


def transported(v: Array, a: Array, b: Array) -> Array:
    """Vectors v (..., 3) turned by the smallest rotation that takes the unit vectors a to the unit vectors b."""
    axis = np.cross(a, b)
    cosine = np.sum(a * b, axis=-1, keepdims=True)
    return cosine * v + np.cross(axis, v) + axis * np.sum(axis * v, axis=-1, keepdims=True) / (1 + cosine)


def halves(wrapped: int | tuple[int, int]) -> tuple[int, int]:
    """Base pairs on a core before and after its dyad: as given, or of a number of both with the dyad in the middle."""
    return wrapped if isinstance(wrapped, tuple) else ((wrapped - 1) // 2, (wrapped - 1) // 2)


def crystal_path(wrapped: int | tuple[int, int] = FULL_WRAP) -> tuple[Array, Array]:
    """Base-pair origins (n, 3) in nm and frames (n, 3, 3) of 1KX5 that are `wrapped`, as `halves` takes it.

    What is wrapped beyond its 147 base pairs, up to ten on either side, is held by a linker histone as in PDB 4QLC.
    """
    data, arms = template("nucleosome_path_1kx5.json"), template("chromatosome_arms_4qlc.json")
    before, after = halves(wrapped)
    inside = slice(MIDDLE + ARM - before, MIDDLE + ARM + after + 1)
    origin, frame = (np.concatenate([arms["entry"][part], np.reshape(data[part], (FULL_WRAP, -1)), arms["exit"][part]])
                     for part in ("origin", "frame"))
    return origin[inside] / 10.0, frame.reshape(-1, 3, 3)[inside]


def joint_frames(wrapped: int | tuple[int, int] = FULL_WRAP) -> Array:
    """Frames (2, 3, 3) with which DNA leaves (0) and arrives (1): helix axis and two normals.

    A linker continues the helix axis, from which the normal of a single base pair stands off by 10 degrees: the axis is
    the mean of the normals over a turn around the joint, of the crystal's last turn where it ends there. The base
    pair's own frame is turned onto it by the shortest way. In 1KX5 the axes cross at 43 degrees; the ten base pairs
    beyond them that PDB 4QLC has, with a linker histone, cross at 42, the normals of the last base pairs at 60.
    """
    before, after = halves(wrapped)
    least = max(before, MIDDLE)
    _, frame = crystal_path((least, max(after, MIDDLE)))
    return np.array([_joint(frame, least + after, 2 * HALF_TURN), _joint(frame, least - before, 2 * HALF_TURN)])


def _joint(frame: Array, end: int, turn: int) -> Array:
    """Frame (3, 3) of the helix axis at base pair `end`, the mean of the normals of `turn` + 1 pairs around it."""
    x, normal = frame[end, :, 0], frame[end, :, 2]
    first = min(max(end - turn // 2, 0), len(frame) - 1 - turn)
    axis = frame[first : first + turn + 1, :, 2].sum(axis=0)
    axis /= np.linalg.norm(axis)
    across = transported(x, normal, axis)
    return np.stack([axis, across, np.cross(axis, across)], axis=1)


def crystal_core(
    wrapped: int | tuple[int, int] = FULL_WRAP, dna_radius: float = 1.1, salt: float = 0.15, rigid_tails: bool = True,
    charges: Literal["fitted", "formal"] = "fitted", missing: MissingDimer = "", dna_charge: float | None = None,
    own_charge: Sequence[float] = (), tail_change: Sequence[float] = (),
) -> Core:
    """The core of PDB 1KX5 with `wrapped` base pairs (as `halves` takes it) in a salt (mol/L).

    Fitted charges: those whose Debye-Hueckel field is the Poisson-Boltzmann field of the core without tails (about 300
    sites on its envelope, mesoscale/disco.py); with `rigid_tails` also the 50 beads of tails that lie on their own
    core, for a model in which tails do not move. Formal charges, a third as many sites: -2 e a wrapped base pair,
    gathered on the DNA axis every 3 bp (-294 e for 147 bp), and those of histones and tails (+148 e). Spheres: wrapped
    DNA, the octamer in 32 balls, those tails in balls of three residues. What belongs to a `missing` dimer is left out:
    spheres, tails, and charges nearest to it. Linker arms have the effective charge `dna_charge` (e) of a base pair of
    linkers beside the fitted ones. Raises ValueError for a salt beyond that of the fits, and for arms without their
    charge.

    Fitted charges of other histones than those of 1KX5: `own_charge` (300,) of the core at this salt, and
    `tail_change` (50,) of the formal charges of rigid tails.
    """
    origin, _ = crystal_path(wrapped)
    data = template("nucleosome_core_1kx5.json")
    before, after = halves(wrapped)
    # From the dyad outwards, so that the set is symmetric whatever the wrapped length.
    index = np.arange(before % SPHERE_SPACING, len(origin), SPHERE_SPACING)
    octamer, tails, histone = (_without(data[key], key, missing)
                               for key in ("octamer_spheres", "tail_spheres", "charge_sites"))
    joint = origin[[-1, 0]]
    sphere = np.concatenate([origin[index], octamer[:, :3] / 10.0, tails[:, :3] / 10.0])
    radius = np.concatenate([np.full(len(index), dna_radius + STAGGER), octamer[:, 3] / 10.0, tails[:, 3] / 10.0])
    # Some tails lie against the DNA's ends in the crystal: no linker can leave without touching them.
    near = np.linalg.norm(sphere[:, None] - joint, axis=2) < dna_radius + radius[:, None]
    near[: len(index), 0] |= index >= len(origin) - NEAR_JOINT
    near[: len(index), 1] |= index < NEAR_JOINT
    if charges == "formal":
        site = np.concatenate([origin[index], histone[:, :3] / 10.0])
        charge = np.concatenate([np.full(len(index), -2.0 * len(origin) / len(index)), histone[:, 3]])
    else:
        site, charge = core_charges(salt, before, after, _rows("core_charges", missing), own_charge)
        on_arm = [arm for arm in (origin[:max(before - MIDDLE, 0)], origin[len(origin) - max(after - MIDDLE, 0):])
                  if len(arm)]
        if on_arm and dna_charge is None:
            raise ValueError(f"{before} and {after} base pairs are wrapped: give the charge of those beyond {MIDDLE}")
        for arm in on_arm:
            places = arm[1::SPHERE_SPACING] if len(arm) > 1 else arm
            site = np.concatenate([site, places])
            charge = np.concatenate([charge, np.full(len(places), dna_charge * len(arm) / len(places))])
    if rigid_tails and charges == "fitted":
        tail_site, tail_charge = rigid_tail_sites(salt, tail_change)
        there = ~np.isin(tails_of_rigid_sites(), missing_tails(missing))
        site, charge = np.concatenate([site, tail_site[there]]), np.concatenate([charge, tail_charge[there]])
    return Core(
        joint_point=joint,
        joint_frame=joint_frames(wrapped),
        site=site,
        site_charge=charge,
        sphere=sphere,
        sphere_radius=radius,
        sphere_near=near.astype(np.int32),
    )


def _dimers(missing: MissingDimer) -> list[dict]:
    """What of the core belongs to the dimers that are missing."""
    data = template("dimers_1kx5.json") if missing else {}
    return [data[side] for side in ("entry", "exit") if missing in (side, "both")]


def _rows(key: str, missing: MissingDimer) -> list[int]:
    return [row for dimer in _dimers(missing) for row in dimer[key]]


def _without(rows: list, key: str, missing: MissingDimer) -> Array:
    """The rows of a table that do not belong to a missing dimer."""
    return np.delete(np.array(rows), _rows(key, missing), axis=0) if missing else np.array(rows)


def missing_tails(missing: MissingDimer) -> list[int]:
    """Tails, in the order of mesoscale.tails.TAILS, that a nucleosome lacks together with its dimers."""
    return _rows("tails", missing)


def protein_core(body: Body, dna_radius: float, salt: float, dna_charge: float) -> Core:
    """The core of a protein on its DNA; `dna_charge` (e) is the effective one of a base pair of linkers.

    Its formal charges have the factor of histone tails at that salt. The linkers ignore their own three last spheres of
    DNA and whatever stands within reach of their first 3 nm: there the structure itself has DNA.
    """
    n = len(body.origin)
    turn = min(HALF_TURN, n - 1)
    joint = body.origin[[-1, 0]]
    frames = np.array([_joint(body.frame, n - 1, turn), _joint(body.frame, 0, turn)])
    index = np.unique(np.append(np.arange(0, n, SPHERE_SPACING), n - 1))
    sphere = np.concatenate([body.origin[index], body.sphere])
    radius = np.concatenate([np.full(len(index), dna_radius + STAGGER), body.radius])
    way = np.array([1.0, -1.0])[:, None] * frames[:, :, 0]
    along = np.clip(np.einsum("kij,ij->ki", sphere[:, None] - joint, way), 0.0, LEAVING)
    apart = np.linalg.norm(sphere[:, None] - joint - along[:, :, None] * way, axis=2)
    near = apart < dna_radius + radius[:, None]
    near[: len(index), 0] |= index >= n - NEAR_JOINT
    near[: len(index), 1] |= index < NEAR_JOINT
    return Core(
        joint_point=joint,
        joint_frame=frames,
        site=np.concatenate([body.origin[index], body.site]),
        site_charge=np.concatenate([np.full(len(index), n * dna_charge / len(index)),
                                    tail_charge_scale(salt) * body.charge]),
        sphere=sphere,
        sphere_radius=radius,
        sphere_near=near.astype(np.int32),
        is_nucleosome=False,
    )


def core_shapes(
    fibre: Fibre, dna_radius: float, salt: float, dna_charge: float, charges: Literal["fitted", "formal"] = "fitted",
    rigid_tails: bool = True,
) -> tuple[tuple[Core, ...], NDArray[np.int32]]:
    """The different cores of a fibre in the order in which they come, at least one, and which one each place has."""
    found: dict[tuple, int] = {}
    shapes, form = [], []
    for place in fibre.places:
        body = fibre.proteins[place.protein].body if place.protein >= 0 else None
        missing = fibre.missing[place.nucleosome] if fibre.missing and body is None else ""
        own = fibre.core_charge[place.nucleosome] if fibre.core_charge and body is None else ()
        change = fibre.tail_charge[place.nucleosome] if fibre.tail_charge and body is None and rigid_tails else ()
        if charges == "formal":
            own = change = ()
        key = (body.checksum,) if body else (*fibre.wrapped[place.nucleosome], missing, own, change)
        if key not in found:
            found[key] = len(shapes)
            shapes.append(protein_core(body, dna_radius, salt, dna_charge) if body else crystal_core(
                key[:2], dna_radius, salt, rigid_tails, charges, missing, dna_charge, own, change))
        form.append(found[key])
    if not shapes:
        shapes = [crystal_core(fibre.wrapped_length, dna_radius, salt, rigid_tails, charges)]
    return tuple(shapes), np.array(form, np.int32)


def coarse_core(core: Core) -> Core:
    """The same core with few spheres, for folding: every second one of wrapped DNA, and one ball for the octamer.

    Other proteins are as they are.
    """
    if not core.is_nucleosome:
        return core
    dna = np.flatnonzero(core.sphere_radius == core.sphere_radius[0])[::2]
    # The rule of STAGGER at twice the spacing.
    wide = 0.5 * float(np.hypot(2 * (core.sphere_radius[0] - STAGGER), 0.34 * SPHERE_SPACING))
    return replace(
        core,
        sphere=np.concatenate([core.sphere[dna], np.zeros((1, 3))]),
        sphere_radius=np.append(np.full(len(dna), wide), OCTAMER_BALL),
        sphere_near=np.concatenate([core.sphere_near[dna], np.zeros((1, 2), np.int32)]),
    )


def ball_core(core: Core) -> Core:
    """The same core as a ball around its centre, smaller for its own linkers: nothing can be trapped in it."""
    if not core.is_nucleosome:
        return core
    return replace(core, sphere=np.zeros((2, 3)), sphere_radius=np.array(CORE_BALLS),
                   sphere_near=np.array([[1, 1], [0, 0]], np.int32))  # fmt: skip
