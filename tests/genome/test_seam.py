"""Nucleosomes beside the seam of a circle."""

import pytest

from chromabuild.base.errors import BadInputError
from chromabuild.genome.locus import Locus


def written(tmp_path, length, dyads):
    (tmp_path / "c.fa").write_text(">c\n" + ("ACGT" * length)[:length] + "\n")
    (tmp_path / "c.bed").write_text("".join(f"c\t{dyad}\t{dyad + 1}\tN{dyad}\n" for dyad in dyads))
    return tmp_path / "c.fa", tmp_path / "c.bed"


def test_a_circle_knows_its_nucleosomes_and_the_linker_across_the_seam(tmp_path):
    locus = Locus.from_files(*written(tmp_path, 414, (103, 310)), circular=True, linking_number=38)
    fibre = locus.fibre()
    assert fibre.circular and fibre.linking_number == 38 and fibre.dyads == (103, 310)
    assert fibre.linkers == [60, 60]


@pytest.mark.parametrize(("dyads", "origin"), [((40, 250), 145), ((160, 370), 265)])
def test_across_the_seam_the_turn_that_mends_it_is_told(tmp_path, dyads, origin):
    """And it does mend it: the same map, counted from there."""
    with pytest.raises(BadInputError, match=f"line [12]: .* across the seam .* {origin} bp on"):
        Locus.from_files(*written(tmp_path, 414, dyads), circular=True)
    turned = sorted((dyad - origin) % 414 for dyad in dyads)
    assert Locus.from_files(*written(tmp_path, 414, turned), circular=True).fibre().dyads == tuple(turned)


def test_too_little_room_across_the_seam(tmp_path):
    with pytest.raises(BadInputError, match="N300 and N75 leave 6 bp between them across the seam .* 10 are needed"):
        Locus.from_files(*written(tmp_path, 378, (75, 300)), circular=True)


@pytest.mark.parametrize("key", ["contacts", "proteins"])
def test_what_a_circle_cannot_have(tmp_path, key):
    files = written(tmp_path, 414, (103, 310))
    (tmp_path / "x.bed").write_text("c\t1\t2\n")
    with pytest.raises(BadInputError, match=f"closed DNA is built without {key}"):
        Locus.from_files(*files, circular=True, **{key: str(tmp_path / "x.bed")})
