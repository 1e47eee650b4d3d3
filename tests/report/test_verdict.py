"""The criteria of soundness: both sides of every limit, what is not judged, and the sentences that follow."""

import re
from pathlib import Path

import pytest

from chromabuild.report.overview import checks_table, overview
from chromabuild.report.verdict import CRITERIA, Verdict, judge, pressure_limit, temperature_limit

# What each criterion allows, written down here once more, and what it means to miss it.
LIMITS = {
    "energy_at_rest": (1, "look"), "restraints_lost": (0, "look"), "offered_shift": (0, "look"),
    "pairs_below_threshold": (0, "bad"), "severe_pairs": (0, "look"), "ring_piercings": (0, "bad"),
    "threaded_strands": (0, "bad"), "merged_molecules": (0, "bad"), "chirality_errors": (0, "bad"),
    "cis_peptides": (0, "look"), "twisted_peptides": (0, "look"), "bond_outliers": (0, "bad"),
    "angle_outliers": (0, "bad"), "bond_rmsz": (1, "bad"), "angle_rmsz": (1, "bad"), "invariants": (0, "bad"),
    "net_charge": (1e-3, "bad"), "drift_kT_per_ns_per_atom": (2, "bad"),
}


def test_every_criterion_has_its_limit_here():
    assert set(CRITERIA) == {*LIMITS, "temperature_off", "pressure_off", "samples"}


@pytest.mark.parametrize("key", LIMITS)
def test_both_sides_of_the_limit(key):
    limit, missed = LIMITS[key]
    step = 1 if limit == 0 else 1e-9
    for sign in (1, -1):
        assert judge(key, sign * limit).state == "good"
        assert judge(key, sign * (limit + step)).state == missed
    assert judge(key, float("nan")).state == missed
    assert judge(key, None, reason="no log").state == "open"


def test_samples_are_asked_for_from_below():
    assert [judge("samples", value).state for value in (9.99, 10)] == ["look", "good"]


def test_drift_limit_is_that_of_gromacs():
    """0.005 kJ/mol/ps per atom in kT/ns per atom at 300 K; R = 8.314462618 J/mol/K."""
    assert CRITERIA["drift_kT_per_ns_per_atom"].limit == pytest.approx(5 / (8.314462618e-3 * 300), rel=0.003)


def test_limits_of_temperature_and_pressure():
    """1 % of 310 K, or four block errors of 2 K; 10 atm, or four of 30 atm."""
    for limit, expected, key in ((temperature_limit(310, 0.1), 3.1, "temperature_off"),
                                 (temperature_limit(310, 2.0), 8.0, "temperature_off"),
                                 (pressure_limit(1.0), 10.0, "pressure_off"),
                                 (pressure_limit(30.0), 120.0, "pressure_off")):
        assert limit == pytest.approx(expected)
        for sign in (1, -1):
            assert judge(key, sign * expected * 0.999, limit).state == "good"
            assert judge(key, sign * expected * 1.001, limit).state == "bad"


def words(verdict, then="next, rest"):
    """The verdict's head, and its three sentences as plain text."""
    page = overview("It is built", verdict, then)
    return re.findall(r"<b class=\"\w+\">([^<]*)</b>", page)[0], [
        re.sub("<[^>]*>", "", text) for text in re.findall(r"<p>(.*?)</p>", page)]


def test_sound():
    head, said = words(Verdict([judge("net_charge", -0.0), judge("pairs_below_threshold", 0)]))
    assert head == "✓ Sound"
    assert said == ["It is built.", "It is sound: no clash and no net charge; all 2 checks are met.", "Next, rest."]


def test_unsound_names_what_fails_and_where_to_look():
    verdict = Verdict([judge("net_charge", 1), judge("twisted_peptides", 3), judge("ring_piercings", 2)], ["run"])
    head, said = words(verdict)
    assert head == "✗ Not sound"
    assert said[1] == ("It is not sound: 2 of 3 checks fail, net charge of the box (1 e, good is ≤ 0.001) and bonds "
                       "through rings (2, good is 0); not judged: dynamics (its stage was not run).")
    assert said[2].startswith("Repair first what stands in Box and ions:") and said[2].endswith("see also Clashes.")
    assert verdict.sections() == {"Clashes": "bad", "Box and ions": "bad"}


def test_a_doubt_leaves_it_sound():
    verdict = Verdict([judge("net_charge", 0), judge("severe_pairs", 1)])
    head, said = words(verdict)
    assert head == "! Sound, with something to look at" and "of 2 checks 1 is worth a look" in said[1]
    assert said[2].startswith("Look at Clashes:") and said[2].endswith("; next, rest.")
    assert verdict.sections() == {"Clashes": "look"}


def test_nothing_is_guessed():
    head, said = words(Verdict([], ["clash", "solvate", "topology", "run"]))
    assert head == "– Not judged yet"
    assert said[1] == ("Whether it is sound cannot be said yet; not judged: clashes, water and ions, the force field "
                       "and dynamics (their stages were not run).")


def test_table_folds_what_is_met():
    shown = checks_table(Verdict([judge("net_charge", 0), judge("ring_piercings", 1),
                                  judge("samples", None, reason="too few values")]))
    above, folded = shown.split("<details>")
    assert "✗ bad" in above and "– not judged" in above and "too few values" in above and "✓ good" not in above
    assert "✓ good" in folded and "Ewald" in folded
    assert checks_table(Verdict([])) == ""


def test_documentation_names_every_criterion():
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "read-the-report.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (.+?) \| (.+) \|$", page, re.MULTILINE))
    for key, criterion in CRITERIA.items():
        told = rows[criterion.subject].split(" | ")
        assert told[1:] == ["bad" if criterion.is_must else "worth a look", criterion.source]
        assert key in ("temperature_off", "pressure_off") or told[0] == " ".join(
            filter(None, (judge(key, None).bound, criterion.unit)))
