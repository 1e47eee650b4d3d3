"""Each ion has the parameters that were made for its water: published numbers against the topology."""

import pytest

from chromabuild.base.force_fields import FORCE_FIELDS
from chromabuild.forcefield.assign import make_topology

JOUNG_CHEATHAM = {  # J. Phys. Chem. B 112:9020 (2008), table 5: Rmin/2 in angstrom, epsilon in kcal/mol
    "tip3p": {"NA": (1.369, 0.0874393), "K": (1.705, 0.1936829), "CL": (2.513, 0.0355910)},
    "spce": {"NA": (1.212, 0.3526418), "K": (1.593, 0.4297054), "CL": (2.711, 0.0127850)},
    "tip4pew": {"NA": (1.226, 0.1684375), "K": (1.590, 0.2794651), "CL": (2.760, 0.0116615)},
}
LI_MERZ = {"tip3p": {"MG": (1.360, 0.01020237), "CA": (1.649, 0.10592870)}}  # J. Chem. Theory Comput. 9:2733 (2013)
CHARMM = {"NA": (1.41075, 0.0469), "K": (1.76375, 0.0870), "MG": (1.18500, 0.0150), "CL": (2.27, 0.150),
          "CA": (1.367, 0.120)}  # toppar_water_ions.str
COUNTS = {"water": 1, "sodium": 1, "potassium": 1, "magnesium": 1, "chloride": 1, "calcium": 1}
CHARGES = {"NA": 1, "K": 1, "MG": 2, "CL": -1, "CA": 2}
PAIRS = [(name, water) for name, one in FORCE_FIELDS.items() for water in one.water]


@pytest.mark.parametrize(("force_field", "water"), PAIRS)
def test_ions_belong_to_the_water(force_field, water):
    topology = make_topology(None, COUNTS, force_field, net_charge=5, water=water)
    found = {}
    for template in topology.templates[1:]:
        kind = template.lj_type[0]
        found[template.name] = (topology.lj_sigma[kind] * 2 ** (1 / 6) / 2, topology.lj_epsilon[kind])
        assert template.charge.tolist() == [CHARGES[template.name]]
    assert list(found) == ["NA", "K", "MG", "CL", "CA"]
    published = CHARMM if FORCE_FIELDS[force_field].is_charmm else {
        **JOUNG_CHEATHAM.get(water, {}), **LI_MERZ.get(water, {})}
    for name, values in published.items():
        assert found[name] == pytest.approx(values, rel=2e-4), name
    if water == "opc":  # a set of its own (Sengupta et al., J. Chem. Inf. Model. 61:869, 2021)
        for name, values in (JOUNG_CHEATHAM["tip4pew"] | LI_MERZ["tip3p"]).items():
            assert found[name] != pytest.approx(values, rel=0.01), name
    else:
        assert published
