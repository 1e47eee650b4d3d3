"""What the checks find in logs and records that are written here."""

import json

import numpy as np
import pytest

from chromabuild.report.checks import clash_checks, phase_checks, verdict_of
from chromabuild.simulate.result import PhaseFiles

ATOMS, KELVIN = 1000, 300.0
KT = 0.0019872042586 * KELVIN  # kcal/mol


def phase(folder, length=20.0, drift=0.0, kelvin=KELVIN, atm=1.0, ensemble="NPT", ramp=None):
    """A log of 400 rows of noise about given means; the conserved energy rises by ``drift`` kT/ns per atom."""
    rng = np.random.default_rng(3)
    time = np.linspace(0, length, 400)
    columns = {"STEP": np.arange(400.0), "TIME": time, "TEMPERATURE": kelvin + rng.normal(0, 1, 400),
               "PRESSURE": atm + rng.normal(0, 20, 400), "DENSITY": 1.02 + rng.normal(0, 0.001, 400),
               "POTENTIAL_ENE": -9000 + rng.normal(0, 5, 400),
               "CONSERVED_ENE": -8000 + drift * time * ATOMS * KT / 1000}
    rows = [" ".join(["INFO:", *columns])]
    rows += [" ".join(["INFO:", *(f"{column[k]:.8f}" for column in columns.values())]) for k in range(400)]
    log = folder / "02-dynamics.log"
    log.write_text("\n".join(rows) + "\n")
    log.with_suffix(".json").write_text(json.dumps({"description": {"phase": {
        "ensemble": ensemble, "temperature": ramp or [KELVIN, KELVIN], "pressure": 1.0}}}))
    return PhaseFiles("dynamics", "dynamics", log, None, "()")


def states(found):
    return {check.key: check.state for check in found}


def test_sound_dynamics(tmp_path):
    found = list(phase_checks(phase(tmp_path, drift=1.9), {"atoms": ATOMS}))
    assert set(states(found).values()) == {"good"} and len(found) == 4
    assert next(c.found for c in found if c.key == "drift_kT_per_ns_per_atom") == pytest.approx(1.9, rel=1e-3)


@pytest.mark.parametrize(("change", "key"), [
    ({"drift": -2.1}, "drift_kT_per_ns_per_atom"), ({"kelvin": KELVIN + 4}, "temperature_off"),
    ({"atm": 60.0}, "pressure_off")])
def test_each_departure_is_found_alone(tmp_path, change, key):
    found = states(phase_checks(phase(tmp_path, **change), {"atoms": ATOMS}))
    assert [name for name, state in found.items() if state == "bad"] == [key]


def test_short_dynamics_are_not_judged(tmp_path):
    found = list(phase_checks(phase(tmp_path, length=9.9, drift=50.0), {"atoms": ATOMS}))
    assert [check.state for check in found] == ["open"] and "9.9 ps" in found[0].reason


def test_what_is_not_held_is_not_judged(tmp_path):
    assert not {"temperature_off", "pressure_off"} & set(states(phase_checks(phase(tmp_path, ensemble="NVE"),
                                                                              {"atoms": ATOMS})))
    assert "temperature_off" not in states(phase_checks(phase(tmp_path, ramp=[10.0, KELVIN]), {"atoms": ATOMS}))


def test_clash_report_is_judged_by_its_end():
    state = {"pairs_below_threshold": {"count": 4, "items": []}, "angle_rmsz": 1.2, "twisted_peptides": {"count": 0}}
    after = state | {"pairs_below_threshold": {"count": 0, "items": []}}
    data = {"threshold": 0.9, "before": state, "after": after,
            "invariants": {"a": {"holds": True}, "b": {"holds": False}}}
    assert states(clash_checks(data)) == {"pairs_below_threshold": "good", "twisted_peptides": "good",
                                          "angle_rmsz": "bad", "invariants": "bad"}
    assert states(clash_checks(data | {"after": None}))["pairs_below_threshold"] == "bad"


def test_records_of_stages(tmp_path):
    def record(**summary):
        return {"summary": summary}

    stages = {"scaffold": record(energy_drift_kbt=-3.0, energy_noise_kbt=2.0, restraints=3, restraints_kept=2),
              "build": record(linkers=[{"offered_shift": 0}, {"offered_shift": -1}], bond_outliers=0),
              "topology": record(net_charge=1.0)}
    found = verdict_of(tmp_path, stages)
    assert {check.key: check.found for check in found.checks} == {
        "energy_at_rest": 1.5, "restraints_lost": 1, "offered_shift": 1, "bond_outliers": 0, "net_charge": 1.0}
    assert found.state == "bad" and list(found.missing) == ["clash", "solvate", "run"]
