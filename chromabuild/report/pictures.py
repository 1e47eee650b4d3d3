"""The pictures of a build: scaffold, solute and solvated box, drawn with ``chromabuild.report.render``."""

from collections.abc import Callable

import numpy as np
from scipy.interpolate import CubicSpline

from chromabuild.base.box_vectors import cell_of, tilt_of
from chromabuild.molecule.colours import Colour, molecule_colours
from chromabuild.molecule.solute import Solute
from chromabuild.report.render import Camera, Canvas, oblique_view, principal_view, sky_visibility

LINKER: Colour = (0.62, 0.65, 0.69)
CATION: Colour = (0.60, 0.42, 0.82)
CHLORIDE: Colour = (0.25, 0.72, 0.35)
WATER: Colour = (0.74, 0.86, 0.96)
BOX_EDGE: Colour = (0.30, 0.36, 0.44)
# Along the fibre from its start to its end; muted, distinguishable without colour vision by lightness.
FIBRE_COLOURS = np.array([[0.30, 0.36, 0.66], [0.22, 0.56, 0.72], [0.36, 0.70, 0.56], [0.88, 0.72, 0.36],
                          [0.86, 0.50, 0.34], [0.72, 0.30, 0.38]])
ELEMENT_RADII = {"H": 1.1, "C": 1.7, "N": 1.55, "O": 1.52, "P": 1.8, "S": 1.8}  # van der Waals, Bondi 1964; H smaller
STRAND_RADIUS = 9.0  # angstrom from the helix axis to the backbone
GROOVE = np.radians(72.0)  # half the angle between the backbones, seen along the axis, on the minor-groove side
WATER_FROM, IONS_FROM = 0.60, 0.35  # share of the depth of the box in front of which they are not drawn
CORE_RADIUS, CORE_HEIGHT = 31.0, 50.0  # angstrom, histone octamer without tails


def fibre_colour(share: float) -> np.ndarray:
    """Colour (3,) of a place along the fibre, share 0..1 of its nucleosomes."""
    grid = np.linspace(0, 1, len(FIBRE_COLOURS))
    return np.array([np.interp(share, grid, FIBRE_COLOURS[:, k]) for k in range(3)])


def scaffold_picture(origin: np.ndarray, frame: np.ndarray, nucleosome: np.ndarray, core_origin: np.ndarray,
                     core_frame: np.ndarray, size: tuple[int, int] = (1600, 1200)) -> np.ndarray:
    """DNA as a double helix coloured by nucleosome (linkers grey), histone cores as discs.

    origin (n, 3), frame (n, 3, 3), nucleosome (n,) of base pairs, core_origin (m, 3), core_frame (m, 3, 3): as in
    ``scaffold.h5``, angstrom. Gives (height, width, 3) uint8.
    """
    cores = len(core_origin)
    palette = np.array([fibre_colour(k / max(cores - 1, 1)) for k in range(cores)] + [LINKER])
    beads_per_step = 6 if len(origin) < 20_000 else 2
    t = np.arange(0, len(origin) - 1, 1 / beads_per_step)
    left = t.astype(int)
    backbone, pairs = [], []
    for sign in (1, -1):
        at = origin + STRAND_RADIUS * (frame[:, :, 1] * sign * np.sin(GROOVE) - frame[:, :, 0] * np.cos(GROOVE))
        backbone.append(CubicSpline(np.arange(len(at)), at)(t))
        pairs.append(at)
    rungs = [pairs[0] * (1 - w) + pairs[1] * w for w in np.linspace(0.12, 0.88, 7)]
    position = np.concatenate(backbone + rungs)
    place = np.concatenate([left, left] + [np.arange(len(origin))] * len(rungs))
    colour = palette[nucleosome[place]]
    on_rung = np.arange(len(place)) >= 2 * len(left)
    colour = np.where(on_rung[:, None], 0.55 * colour + 0.45, colour)
    radius = np.where(on_rung, 1.5, 2.7)

    axis = core_frame[:, :, 2] * CORE_HEIGHT / 2
    outline = np.concatenate([position, core_origin + axis, core_origin - axis])
    canvas = Canvas(Camera.framing(outline, principal_view(origin), size))
    # The cores shade the DNA too: spheres that fill them stand in for them in the sky map.
    fill = (core_origin[:, None] + np.linspace(-0.8, 0.8, 5)[None, :, None] * axis[:, None]).reshape(-1, 3)
    sky = sky_visibility(np.concatenate([position, fill]), np.concatenate([radius, np.full(len(fill), 12.0)]))
    canvas.draw_spheres(position, radius, colour, _ambient(sky[: len(position)]))
    for k in range(cores):
        canvas.draw_cylinder(core_origin[k] - axis[k], core_origin[k] + axis[k], CORE_RADIUS,
                             tuple(0.45 * palette[k] + 0.55 * np.array([0.96, 0.94, 0.90])))
    return canvas.image(haze=0.45)


def atom_style(solute: Solute) -> tuple[np.ndarray, np.ndarray]:
    """Radius (n,) and colour (n, 3) of every atom, float32."""
    elements = solute.elements()
    radius = np.full(len(elements), 1.6, dtype=np.float32)
    for element, value in ELEMENT_RADII.items():
        radius[elements == element] = value
    colours = molecule_colours(solute)
    by_molecule = np.array([colours[name] for name in solute.molecule_name], dtype=np.float32)
    colour = np.repeat(by_molecule, np.diff(solute.molecule_first_atom), axis=0)
    return radius, colour


def solute_picture(position: np.ndarray, radius: np.ndarray, colour: np.ndarray,
                   size: tuple[int, int] = (1600, 1200)) -> np.ndarray:
    """All atoms as shaded spheres; position (n, 3), radius (n,), colour (n, 3). Gives (height, width, 3) uint8."""
    canvas = Canvas(Camera.framing(position, principal_view(position), size, radius=float(radius.max())))
    canvas.draw_spheres(position, radius, colour, _ambient(sky_visibility(position, radius)))
    return canvas.image()


def box_picture(position: np.ndarray, radius: np.ndarray, colour: np.ndarray, box: np.ndarray, water: np.ndarray,
                cation: np.ndarray, chloride: np.ndarray, size: tuple[int, int] = (1600, 1200)) -> np.ndarray:
    """The solvated box, cut open: the solute whole, water only in the back, ions from before the cut backwards.

    position, radius, colour: the solute; box: (3,) edges from the origin, or (3, 3) vectors of a cell around half of
    their sum, in which all is; water, cation, chloride (k, 3), angstrom.
    """
    if tilt_of(box).any():
        corners, edges = cell_of(box)
        lower, upper = corners.min(axis=0), corners.max(axis=0)
    else:
        turned = _longest_across(box)
        box, position, water, cation, chloride = (turned(p) for p in (box, position, water, cation, chloride))
        corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]) * box
        edges = [(i, i | axis) for i in range(8) for axis in (1, 2, 4) if not i & axis]
        lower, upper = np.zeros(3), box
    view = oblique_view(20.0, 20.0)
    canvas = Canvas(Camera.framing(corners, view, size))
    depth = upper[1] - lower[1]
    water = water[water[:, 1] > lower[1] + WATER_FROM * depth]
    ions = [p[p[:, 1] > lower[1] + IONS_FROM * depth] for p in (cation, chloride)]
    parts = ((position, radius, colour), (water, 1.7, WATER), (ions[0], 1.9, CATION), (ions[1], 1.9, CHLORIDE))
    sky = np.ones(sum(len(p) for p, _, _ in parts), dtype=np.float32)
    sky[: len(position)] = _ambient(sky_visibility(position, radius))
    canvas.draw_spheres(np.concatenate([p for p, _, _ in parts]),
                        np.concatenate([np.broadcast_to(np.float32(r), len(p)) for p, r, _ in parts]),
                        np.concatenate([np.broadcast_to(np.float32(c), (len(p), 3)) for p, _, c in parts]), sky)
    width = 0.0012 * float(np.linalg.norm(upper - lower))
    nearest = int(np.argmax(corners @ view[2]))
    for i, j in edges:
        # The edges of the nearest corner would cross the solute.
        if nearest not in (i, j):
            canvas.draw_cylinder(corners[i], corners[j], width, BOX_EDGE)
    return canvas.image(haze=0.3)


def _longest_across(box: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Turns points of the box so that its longest edge is x and its shortest y (depth), without mirroring them."""
    long, middle, short = np.argsort(-box, kind="stable")
    axes = np.array([long, short, middle])
    mirrored = np.linalg.det(np.eye(3)[axes]) < 0

    def turned(points: np.ndarray) -> np.ndarray:
        result = points[..., axes]
        if mirrored and points is not box:
            result[..., 1] = box[short] - result[..., 1]
        return result

    return turned


def _ambient(sky: np.ndarray) -> np.ndarray:
    return np.clip(0.42 + 0.85 * sky, 0, 1)
