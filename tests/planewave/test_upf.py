"""UPF files beside the analytic form: the potential of Goedecker, Teter and Hutter written as tables in real space.

Both describe the same potential, the one by closed forms in reciprocal space, the other by Simpson's rule on a
logarithmic mesh; so terms of the energy agree to the error of that rule.
"""

from math import erf, gamma

import numpy as np
import pytest
from support.plane_waves import MAGNESIUM_WATER, Case, compute, run, write_case

CASE = Case(MAGNESIUM_WATER, 9.0, 25.0, "PZ", 2)
# Element: charge, r_loc, coefficients, (l, radius, h) as in templates/gth_potentials.txt.
GTH = {
    "H": (1, .2, [-4.18023680, .72507482], []),
    "O": (6, .24762086, [-16.58031797, 2.39570092], [(0, .22178614, [[18.26691718]])]),
    "Mg": (2, .65181169, [-2.86429746], [(0, .55647814, [[2.97095712, -.51508390], [-.51508390, 1.32994091]]),
                                         (1, .67756881, [[1.04988101]])]),
}


def upf_text(element: str, **changes: str) -> str:
    """A file of version 2. Energies in Ry."""
    charge, r_local, c, channels = GTH[element]
    step = 0.0125
    r = 1e-4 * np.exp(step * np.arange(1001))
    x = r / r_local
    local = 2 * (-charge / r * np.array([erf(v / 2 ** .5) for v in x])
                 + np.exp(-x ** 2 / 2) * sum(value * x ** (2 * k) for k, value in enumerate(c)))
    projectors, coupling = [], np.zeros((8, 8))
    for angular, radius, h in channels:
        first = len(projectors)
        for i in range(len(h)):
            power = angular + (4 * (i + 1) - 1) / 2
            projectors.append((angular, 2 ** .5 * r ** (angular + 2 * i) * np.exp(-r ** 2 / (2 * radius ** 2)) * r
                               / (radius ** power * gamma(power) ** .5)))
        coupling[first:first + len(h), first:first + len(h)] = 2 * np.array(h)
    n = len(projectors)
    header = {"element": element, "pseudo_type": "NC", "core_correction": "false", "has_so": "false",
              "functional": "SLA PZ NOGX NOGC", "z_valence": f"{charge:.3f}", "mesh_size": str(len(r)),
              "number_of_proj": str(n)} | changes

    def table(name: str, values: np.ndarray, attributes: str = "") -> str:
        return f"<{name}{attributes}>\n" + "\n".join(f"{v:.16e}" for v in values) + f"\n</{name}>\n"

    return ('<UPF version="2.0.1">\n<PP_HEADER ' + " ".join(f'{key}="{value}"' for key, value in header.items())
            + "/>\n<PP_MESH>\n" + table("PP_R", r) + table("PP_RAB", step * r) + "</PP_MESH>\n"
            + table("PP_LOCAL", local) + "<PP_NONLOCAL>\n"
            + "".join(table(f"PP_BETA.{k + 1}", beta, f' angular_momentum="{angular}" cutoff_radius_index="{len(r)}"')
                      for k, (angular, beta) in enumerate(projectors))
            + (table("PP_DIJ", coupling[:n, :n].ravel()) if n else "") + "</PP_NONLOCAL>\n</UPF>\n")


def test_tables_give_the_energies_of_the_closed_form(tmp_path):
    files = {}
    for k, element in enumerate(GTH, 1):
        (tmp_path / f"{element}.upf").write_text(upf_text(element))
        files[f"upf{k}"] = f"{element} {element}.upf"
    closed, tables = compute(tmp_path, CASE), compute(tmp_path, CASE, INPUT=files)
    for term in ("total", "local", "nonlocal"):
        assert tables[term] == pytest.approx(closed[term], abs=1e-7 if term == "total" else 2e-6)
    np.testing.assert_allclose(tables["forces"], closed["forces"], atol=1e-6)


@pytest.mark.parametrize(("text", "words"), [
    (upf_text("O", pseudo_type="US"), ["type US", "norm-conserving"]),
    (upf_text("O", core_correction="true"), ["core correction"]),
    (upf_text("O", functional="PBE"), ["made with PBE", "functional = PZ"]),
    (upf_text("O", functional="B3LYP"), ["B3LYP"]),
    (upf_text("H", z_valence="none"), ["damaged", "PP_HEADER"]),
    (upf_text("O").replace("</PP_RAB>", ""), ["damaged", "PP_RAB"]),
    (upf_text("Mg"), ["is for Mg"]),
    ("<PP_HEADER>", ["version 2", "upfconv"]),
], ids=["ultrasoft", "core", "other functional", "unknown functional", "header", "cut", "element", "old"])
def test_files_that_cannot_be_used(tmp_path, text, words):
    (tmp_path / "O.upf").write_text(text)
    done = run(tmp_path, write_case(tmp_path, CASE, INPUT={"upf1": "O O.upf"}))
    assert done.returncode == 3
    assert all(word in done.stderr for word in words), done.stderr
    assert not (tmp_path / "case.json").exists()
