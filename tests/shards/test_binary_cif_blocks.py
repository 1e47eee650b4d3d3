"""Columns of BinaryCIF in blocks: the bytes of those in memory, however they are cut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chromabuild.base.errors import BadInputError
from chromabuild.shards import binary_cif
from chromabuild.shards.binary_cif_blocks import BlockColumn, write_file

NUMBERS = st.lists(st.one_of(st.integers(-3, 3), st.integers(-300, 300), st.integers(-70_000, 70_000),
                             st.integers(-(2**29), 2**29)), max_size=40)


@settings(max_examples=60, deadline=None)
@given(NUMBERS, st.integers(1, 9), st.integers(1, 4))
def test_bytes_are_those_of_columns_in_memory(tmp_path_factory, numbers, at_once, repeats):
    values = np.repeat(np.array(numbers, dtype=np.int64), repeats)
    n = len(values)
    distinct = ["A", "BB", "C3'"]

    def blocks(of=values):
        return lambda: (of[start:start + at_once] for start in range(0, n, at_once))

    expected = binary_cif.file_bytes("X", [("_x", n, [
        binary_cif.integers("plain", values), binary_cif.integers("runs", values, run_length=True, mask=values % 2),
        binary_cif.integers("id", values, delta=True), binary_cif.thousandths("place", values),
        binary_cif.texts("text", distinct, values % 3), binary_cif.absent("none", "?", n)])])
    path = tmp_path_factory.mktemp("cif") / "x.bcif"
    write_file(path, "X", [("_x", n, [
        BlockColumn("plain", blocks()), BlockColumn("runs", blocks(), as_runs=True, mask=blocks(values % 2)),
        BlockColumn("id", blocks(), as_differences=True, as_runs=True),
        BlockColumn("place", blocks(), as_differences=True, factor=1000),
        BlockColumn("text", blocks(values % 3), distinct=distinct), binary_cif.absent("none", "?", n)])])
    assert path.read_bytes() == expected


def test_more_than_the_format_holds_is_refused(tmp_path):
    with pytest.raises(BadInputError, match="2,147,483,648 rows, and a BinaryCIF file holds 2,147,483,647"):
        write_file(tmp_path / "x.bcif", "X", [("_x", 1 << 31, [])])
    assert not list(tmp_path.iterdir())
