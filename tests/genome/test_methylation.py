"""Modified cytosines from bedMethyl and BED: strands, draws by the seed, thresholds, and what is refused."""

import numpy as np
import pytest

from chromabuild.base.errors import BadInputError
from chromabuild.genome.methylation import MODIFIED, read_methylation

SEQUENCE = "AACGTTCGGGCATCG"  # + strand, base 100 on; CpGs at 102, 106, 113
START = 100


def row(position, strand, percent, name="m", reads=20, chromosome="chrI"):
    place = f"{position}\t{position + 1}"
    return f"{chromosome}\t{place}\t{name}\t{reads}\t{strand}\t{place}\t255,0,0\t{reads}\t{percent}\n"


def read(tmp_path, text, threshold=None, seed=1, sequence=SEQUENCE):
    path = tmp_path / "cpg.bedMethyl"
    path.write_text(text)
    return read_methylation(path, "chrI", START, sequence, threshold, seed)


def test_every_strand_has_its_own_records(tmp_path):
    found = read(tmp_path, row(102, "+", 100) + row(107, "-", 100) + row(110, "+", 100, "h") + row(113, "+", 0)
                 + row(102, "+", 100, chromosome="chrII") + row(90, "+", 100))
    expected = np.zeros((2, len(SEQUENCE)), dtype=int)
    expected[0, 2], expected[1, 7], expected[0, 10] = 1, 1, 2
    assert (found == expected).all() and MODIFIED[:2] == ("5mC", "5hmC")
    # The C that a code of strand - stands for pairs with a G of strand +.
    assert all(SEQUENCE[k] == "C" for k in np.flatnonzero(found[0])) and SEQUENCE[7] == "G"


def test_bed_without_strand_means_both_cytosines_of_the_cpg(tmp_path):
    found = read(tmp_path, "chrI\t102\t104\nchrI\t106\t107\t5fC\t0\t.\n")
    assert found.nonzero()[0].tolist() == [0, 0, 1, 1] and found.nonzero()[1].tolist() == [2, 6, 3, 7]
    assert found[0, 6] == found[1, 7] == 3


def test_fractions_are_probabilities_by_the_seed(tmp_path):
    """Of 3,000 CpGs with 70 % of 5mC and 20 % of 5hmC: within four standard deviations; the same by seed and place."""
    sequence = "CG" * 3000
    text = "".join(row(START + k, "+", 70) + row(START + k, "+", 20, "h") + row(START + k + 1, "-", 70)
                   for k in range(0, 6000, 2))
    found = read(tmp_path, text, sequence=sequence)
    for code, share in ((1, 0.7), (2, 0.2)):
        deviation = np.sqrt(share * (1 - share) / 3000)
        assert abs((found[0] == code).sum() / 3000 - share) < 4 * deviation
    # Both strands of a CpG have one draw: where the fractions are alike, so is the methylation.
    assert ((found[0, ::2] == 1) == (found[1, 1::2] == 1)).all()
    assert (found == read(tmp_path, text, sequence=sequence)).all()
    assert (found != read(tmp_path, text, sequence=sequence, seed=2)).any()
    fewer = "".join(row(START + k, "+", 70) for k in range(600, 1200, 2))
    assert ((read(tmp_path, fewer, sequence=sequence)[0] == 1)[600:1200] == (found[0] == 1)[600:1200]).all()


def test_a_threshold_takes_the_largest_fraction_that_reaches_it(tmp_path):
    text = row(102, "+", 60) + row(102, "+", 30, "h") + row(106, "+", 49.9) + row(113, "+", 50, "m,CG,0") + row(
        103, "-", 90, reads=0)
    assert np.flatnonzero(read(tmp_path, text, 0.5)[0]).tolist() == [2, 13]
    assert read(tmp_path, text, 0.5)[0, 2] == 1 and not read(tmp_path, text, 0.5)[1].any()


@pytest.mark.parametrize(("text", "sentence"), [
    (row(102, "-", 50), r"line 1: base 102 \(from 0\) of chrI is G on strand -, not C"),
    (row(102, "+", 5) + row(101, "+", 50), r"line 2: base 101 \(from 0\) of chrI is A on strand \+, not C"),
    (row(102, "+", 50, "a"), "line 1: 'a' is no modification of cytosine"),
    (row(102, "+", 150), "line 1: '150' in column 11 is no percentage"),
    (row(102, "+", "x"), "line 1: 'x' in column 11 is no percentage"),
    (row(102, "x", 50), "line 1: strand 'x' is none of"),
    (row(102, "+", 50) + row(102, "+", 60), r"line 2: 5mC of base 102 on strand \+ stands on line 1 already"),
    (row(102, "+", 70) + row(102, "+", 60, "h"), r"line 2: the modifications of base 102 on strand \+ add up"),
    ("chrI\t102\t106\n", "line 1: 4 bases without a strand"),
    ("chrI\t102\n", "line 1: 2 columns in"),
    ("chrI\t110\t111\n", r"line 1: base 111 \(from 0\) of chrI is T on strand -, not C"),
    ("chrIV\t102\t104\n", "holds no cytosine of chrI:101-115"),
])
def test_what_fits_no_cytosine_is_refused(tmp_path, text, sentence):
    with pytest.raises(BadInputError, match=sentence):
        read(tmp_path, text)
