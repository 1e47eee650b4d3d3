"""The source's algorithms (benchmarks/engine_kernel/cell_algorithms.f90) compute the forces of the engine."""

import subprocess

import pytest


@pytest.mark.release
def test_forces_are_those_of_the_engine(drivers):
    """12^3 waters. All use one linear table, of density 20, whose error the engine's own run with it shows; single
    precision adds 1e-6 of the positions' rounding in a box of 37 angstrom."""
    done = subprocess.run([drivers / "cell_algorithms", "12", "8", "9", "7", "1"], capture_output=True, text=True,
                          check=True)
    rows = {line[:22].strip(): line[22:].split() for line in done.stdout.splitlines()[2:]}
    table_error = float(rows["engine, linear tables"][-1])
    assert 0 < table_error < 2e-4
    pairs, memory = {}, {}
    for first, second in ((1, 2), (3, 4)):
        for layout in ("AoS", "SoA"):
            found = rows[f"Algorithms {first}, {second} ({layout})"]
            assert float(found[-1]) == pytest.approx(table_error, rel=0.05)
            pairs[first, layout], memory[first, layout] = int(found[1]), float(found[0])
    # The layouts may round distances at the reach of the list differently.
    for first in (1, 3):
        assert pairs[first, "AoS"] == pytest.approx(pairs[first, "SoA"], rel=1e-4)
    assert pairs[1, "SoA"] < pairs[3, "SoA"]
    assert memory[3, "SoA"] < memory[1, "SoA"]
