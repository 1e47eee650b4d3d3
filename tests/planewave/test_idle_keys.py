"""Keys of chromaqm that have no effect with the others are refused, by one rule of the table of keys."""

import re

import pytest
from support import systems
from support.plane_waves import HYDROGEN, Case, write_case

CASE = Case(HYDROGEN, 6.0, 30.0, "PZ")
BORN_OPPENHEIMER = {"method": "BORN_OPPENHEIMER"}


def checked(tmp_path, **sections) -> str:
    """What `chromaqm check` refuses, without the name of the program."""
    control = write_case(tmp_path, CASE, **sections)
    return systems.run("check", control.name, program="chromaqm", folder=tmp_path).stderr.removeprefix("chromaqm: ")


@pytest.mark.parametrize(("sections", "lacking"), [
    ({"INPUT": {"restartfile": "a"}}, "a section [DYNAMICS]"),
    ({"OUTPUT": {"period": 2}}, "a section [DYNAMICS]"),
    ({"OUTPUT": {"xyzfile": "a"}}, "a section [DYNAMICS]"),
    ({"OUTPUT": {"restart_period": 2}, "DYNAMICS": {}}, "restartfile"),
    ({"ELECTRONS": {"spline_order": 14}}, "local_sums = SPLINE or nonlocal_sums = SPLINE"),
    ({"ELECTRONS": {"spline_scale": 1.5}}, "local_sums = SPLINE or nonlocal_sums = SPLINE"),
    ({"PARALLEL": {"gexpandfact": 2}}, "layer = OBJECTS"),
    ({"PARALLEL": {"numchunks": 2}}, "layer = OBJECTS"),
    ({"DYNAMICS": BORN_OPPENHEIMER | {"electron_mass": 300}}, "method = RATTLE or method = NONORTHOGONAL"),
    ({"DYNAMICS": BORN_OPPENHEIMER | {"mass_cutoff": 3}}, "method = RATTLE or method = NONORTHOGONAL"),
    ({"DYNAMICS": BORN_OPPENHEIMER | {"state_energy": 1e-3}}, "method = RATTLE or method = NONORTHOGONAL"),
    ({"DYNAMICS": {"overlap_tolerance": 0.1}}, "method = NONORTHOGONAL"),
    ({"DYNAMICS": {"ion_period": 10}}, "thermostat = NOSE_HOOVER"),
    ({"DYNAMICS": {"state_period": 10}}, "state_energy"),
    ({"DYNAMICS": {"chain_links": 3}}, "thermostat = NOSE_HOOVER or state_energy"),
    ({"DYNAMICS": {"thermostat": "NOSE_HOOVER"}}, "temperature"),
])
def test_keys_without_effect(tmp_path, sections, lacking):
    refused = checked(tmp_path, **sections)
    key, value = list(list(sections.values())[0].items())[-1]
    assert refused.startswith("case.inp, line ")
    assert refused.endswith(f": {key} = {value} has no effect without {lacking}; add that, or leave it out\n")


@pytest.mark.parametrize("sections", [
    {"ELECTRONS": {"spline_order": 14, "nonlocal_sums": "SPLINE"}},
    {"PARALLEL": {"layer": "OBJECTS", "gexpandfact": 2}},
    {"DYNAMICS": {"state_energy": 1e-3, "state_period": 10, "chain_links": 3}},
    {"DYNAMICS": {"method": "NONORTHOGONAL", "overlap_tolerance": 0.1, "electron_mass": 300}},
    {"DYNAMICS": {"state_period": "3.00"}, "OUTPUT": {"period": "+1"}},
])
def test_keys_with_effect_or_their_defaults(tmp_path, sections):
    assert checked(tmp_path, **sections) == ""


def test_what_the_help_prints_is_taken(tmp_path):
    """All keys with their defaults, however they go together."""
    control = write_case(tmp_path, CASE)
    text = systems.run("help", "", program="chromaqm").stdout
    for key, value in (("atomfile", "case.xyz"), ("box", "6.0")):
        text, given = re.subn(rf"^# {key} +=", f"{key} = {value}", text, flags=re.MULTILINE)
        assert given == 1
    control.write_text(text)
    done = systems.run("check", control.name, program="chromaqm", folder=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("sections", "words"), [
    ({"DYNAMICS": {"temperature": 1e30}}, "'temperature = 1e+30' must be a number, from 0 to 1e6"),
    ({"PARALLEL": {"layer": "OBJECTS", "gexpandfact": 1e20}}, "'gexpandfact = 1e+20' must be a number, from 1e-3 to "
                                                              "1e3"),
    ({"SYSTEM": {"charge": 1001}}, "'charge = 1001' must be from -1000 to 1000"),
    ({"ELECTRONS": {"cutoff": 1e9}}, "'cutoff = 1000000000.0' must be a number, from 1.0 to 1.0e6"),
    ({"MINIMIZE": {"nsteps": -1}}, "'nsteps = -1' must be from 0 to 1e9"),
])
def test_ranges(tmp_path, sections, words):
    assert checked(tmp_path, **sections).endswith(f": {words}\n")
