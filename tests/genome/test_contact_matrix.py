"""Measured maps in the bins of a comparison, and the files that ensembles write, read by another program."""

import h5py
import numpy as np
import pytest

from chromabuild.base.errors import BadInputError
from chromabuild.genome.contact_energies import contact_energies_text, read_contact_energies
from chromabuild.genome.contact_map import upper_pixels, write_pixels
from chromabuild.genome.contact_matrix import read_map
from mesoscale.contact_energies import ContactEnergy

EDGES = 400 * np.arange(3, 10)


@pytest.fixture(scope="module")
def counts():
    found = np.random.default_rng(1).gamma(1.0, 2.0, (20, 20)).round(3)
    found[found < 1] = 0
    return np.triu(found) + np.triu(found, 1).T


def joined(counts, first, size):
    """In bins of EDGES: fine bin k begins at first + k size; pairs count once."""
    to = (first + size * np.arange(20)) // 400 - 3
    found = np.zeros((6, 6))
    for i in range(20):
        for j in range(i, 20):
            if 0 <= to[i] < 6 and 0 <= to[j] < 6:
                found[to[i], to[j]] += counts[i, j]
                found[to[j], to[i]] += counts[i, j] if to[i] != to[j] else 0
    return found


def test_a_map_with_fractions_comes_back_through_hictk(counts, tmp_path):
    """Written by us, read by hictk in bins twice as wide; the chromosome is spelled in another way."""
    path = tmp_path / "map.cool"
    write_pixels(upper_pixels(counts), 20, 200, "chrXIII", 1000, path)
    assert read_map(path, "XIII", EDGES) == pytest.approx(joined(counts, 1000, 200))
    again = tmp_path / "again.cool"
    write_pixels(upper_pixels(counts), 20, 200, "chrXIII", 1000, again)
    assert again.read_bytes() == path.read_bytes()
    with h5py.File(path) as file:
        assert file.attrs["sum"] == pytest.approx(np.triu(counts).sum())


def test_bedpe_with_a_count_a_pixel_is_the_same_map(counts, tmp_path):
    path = tmp_path / "map.bedpe"
    row, column, count = upper_pixels(counts)
    places = 1000 + 200 * np.stack([row, column])
    path.write_text("".join(f"chrXIII\t{b}\t{b + 200}\tchrXIII\t{a}\t{a + 200}\t.\t{n}\n"
                            for a, b, n in zip(*places, count, strict=True)) + "chrI\t0\t200\tchrI\t400\t600\t.\t9\n")
    assert read_map(path, "chrXIII", EDGES) == pytest.approx(joined(counts, 1000, 200))


def test_what_does_not_fit_is_refused(counts, tmp_path):
    path = tmp_path / "map.cool"
    write_pixels(upper_pixels(counts), 20, 150, "chrXIII", 1050, path)
    with pytest.raises(BadInputError, match="bins of 150 bp, which 400 bp .* multiple of 150"):
        read_map(path, "chrXIII", EDGES)
    lines = tmp_path / "map.bedpe"
    lines.write_text("chrXIII\t1350\t1600\tchrXIII\t2000\t2100\t.\t3\n")
    with pytest.raises(BadInputError, match="map.bedpe, line 1: .* does not lie in bins of 150 bp"):
        read_map(lines, "chrXIII", 150 * np.arange(9, 20))
    with pytest.raises(BadInputError, match="map.bedpe holds no pixel within chrXIV:1201-3600"):
        read_map(lines, "chrXIV", EDGES)
    with pytest.raises(BadInputError, match="does not exist"):
        read_map(tmp_path / "missing.cool", "chrXIII", EDGES)


def test_energies_come_back(tmp_path):
    entries = (ContactEnergy((100, 200), (900, 1000), 0.25, 0.5), ContactEnergy((300, 400), (700, 800), 0.0, -1.5))
    path = tmp_path / "energies.bedpe"
    path.write_text(contact_energies_text(entries, "chrS", 1000))
    assert read_contact_energies(path, "chrS", 1000, 1000) == entries
    with pytest.raises(BadInputError, match="is not within the locus"):
        read_contact_energies(path, "chrS", 1150, 1000)
    path.write_text(path.read_text().replace("0.25", "1.2"))
    with pytest.raises(BadInputError, match="line 2: the frequency 1.2 is not between 0 and 1"):
        read_contact_energies(path, "chrS", 1000, 1000)
