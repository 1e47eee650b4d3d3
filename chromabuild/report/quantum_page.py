"""The page of `chromabuild qm check`: energies and forces of a contact by plane waves and by the force field."""


import numpy as np

from chromabuild.base.versions import versions
from chromabuild.quantum.check import Check
from chromabuild.quantum.cluster import Cluster
from chromabuild.report import html, pictures
from chromabuild.report.downloads import figure
from chromabuild.report.trace import Curves

GOOD_SHIFT, GOOD_TURN, GOOD_DEVIATION = 0.1, 10.0, 1.0
"""Angstrom, degree and kcal/mol up to which a force field is called near. The limits are ours: what density functionals
differ among themselves, and what is called chemical accuracy."""
ELEMENT_COLOURS = {"H": (0.93, 0.93, 0.93), "C": (0.45, 0.48, 0.52), "N": (0.25, 0.40, 0.85), "O": (0.85, 0.25, 0.22),
                   "P": (0.95, 0.60, 0.20), "S": (0.90, 0.80, 0.25)}
OTHER_COLOUR = (0.45, 0.75, 0.45)
SHRUNK = 0.45
"""Of van der Waals radii, so that bonds and contacts can be seen."""


def quantum_page(subject: str, force_field: str, check: Check) -> str:
    """The whole document; it loads nothing. ``subject``: the atoms."""
    unit = "Å" if check.scan.coordinate == "distance" else "°"
    waves, field = check.minima()
    shift = abs(waves - field) if unit == "Å" else abs((waves - field + 180) % 360 - 180)
    near = shift <= (GOOD_SHIFT if unit == "Å" else GOOD_TURN), check.deviation() <= GOOD_DEVIATION
    parts = {
        "Energies": _energies(check, force_field, unit),
        "Minimum and deviation": html.table(
            ("measure", "plane waves", force_field, "difference", "near where"),
            [(f"lowest at, {unit}", waves, field, html.Judged(shift, "good" if near[0] else "look"),
              f"≤ {GOOD_SHIFT if unit == 'Å' else GOOD_TURN:g} {unit}"),
             ("deviation of the curves, kcal/mol", None, None,
              html.Judged(check.deviation(), "good" if near[1] else "look"), f"≤ {GOOD_DEVIATION:g}")],
            note="The deviation is the root mean square difference about the mean, below 10 kcal/mol."),
        "Forces": _forces(check, force_field),
        "Cluster": _cluster(check),
        "Made with": html.fold("Versions", html.facts(versions().items())),
    }
    said = _sentence(subject, force_field, unit, waves, field, check.deviation(), all(near))
    body = (f"<h1>{html.text(subject)}</h1><p class=lead>{said}</p>"
            + "".join(html.section(title, content) for title, content in parts.items())
            + "<footer>This page is one file and loads nothing.</footer>")
    return html.page(f"{subject}: plane waves and force field", body, html.page_style(),
                     aside=html.contents(list(parts)))


def _sentence(subject: str, force_field: str, unit: str, waves: float, field: float, deviation: float,
              is_near: bool) -> str:
    """What was found, in two sentences."""
    verdict = "follows" if is_near else "departs from"
    return html.text(f"{force_field} {verdict} plane waves along {subject}: the lowest energies are at {field:.2f} and "
                     f"{waves:.2f} {unit}, and the curves deviate by {deviation:.2f} kcal/mol.")


def _energies(check: Check, force_field: str, unit: str) -> str:
    scan = check.scan
    curves = Curves({"plane waves": (scan.value, check.quantum), force_field: (scan.value, check.force_field)},
                    f"{scan.coordinate}, {unit}", "energy, kcal/mol")
    zero = "the largest distance" if unit == "Å" else "the lowest point of each"
    caption = (f"Energy against the {scan.coordinate}, from {zero}; all else stands still. As built: "
               f"{scan.value[scan.as_built]:.2f} {unit}.")
    rows = list(zip(scan.value.tolist(), check.quantum.tolist(), check.force_field.tolist(),
                    (check.force_field - check.quantum).tolist(), strict=True))
    return figure(curves, caption, "scan") + html.fold("Numbers", html.table(
        (f"{scan.coordinate}, {unit}", "plane waves, kcal/mol", f"{force_field}, kcal/mol", "difference"), rows))


def _forces(check: Check, force_field: str) -> str:
    rows = []
    for name, charge, waves, field in zip(check.piece_names, check.cluster.piece_charge, *check.piece_forces,
                                          strict=True):
        rows.append((name, int(charge), float(np.linalg.norm(waves)), float(np.linalg.norm(field)),
                     float(np.linalg.norm(waves - field))))
    return html.table(("piece", "charge, e", "plane waves, kcal/mol/Å", f"{force_field}, kcal/mol/Å",
                       "what is left, kcal/mol/Å"), rows,
                      note="Net force of the other pieces on each, as built. What is left is the length of the "
                           "difference of the two vectors.")


def _cluster(check: Check) -> str:
    cluster, method = check.cluster, check.method
    n_atoms = sum(element != "" for element in cluster.element)
    return _picture(cluster) + html.facts({
        "atoms": f"{n_atoms}, of which {n_atoms - sum(e != '' for e in cluster.element[:cluster.n_atoms])} hydrogens "
                 "close cuts",
        "charge": f"{cluster.total_charge:+d} e",
        "box": f"{' × '.join(f'{edge:.1f}' for edge in check.box)} Å, without images",
        "functional": method.functional + (" with D3(BJ)" if method.with_dispersion else ", without dispersion"),
        "cutoff": f"{method.cutoff:g} Ry",
        "pieces": ", ".join(check.piece_names),
    }.items())


def _picture(cluster: Cluster) -> str:
    seen = np.array([element != "" for element in cluster.element])
    elements = [element for element in cluster.element if element]
    radius = np.array([SHRUNK * pictures.ELEMENT_RADII.get(element, 1.6) for element in elements])
    colour = np.array([ELEMENT_COLOURS.get(element, OTHER_COLOUR) for element in elements])
    return html.picture(pictures.solute_picture(cluster.position[seen], radius, colour, (900, 620)),
                        "The cluster as built.", [(e, ELEMENT_COLOURS.get(e, OTHER_COLOUR))
                                                  for e in dict.fromkeys(elements)])
