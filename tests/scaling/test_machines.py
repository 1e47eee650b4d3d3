"""Machine files: the bundled ones, where their numbers come from, and what a bad one is told."""

import numpy as np
import pytest
import yaml

from chromabuild.base.errors import BadInputError
from chromabuild.scaling import measured
from chromabuild.scaling.machine import FOLDER, bundled, find_machine, listing
from chromabuild.scaling.published import bluegene, fugaku, genesis
from chromabuild.scaling.topology import tofu_on_grid

EXAMPLE = yaml.safe_load((FOLDER / "infiniband.yaml").read_text())


def changed(**values):
    """The text of an example file; keys with dots in them, None takes a key away."""
    data = yaml.safe_load(yaml.safe_dump(EXAMPLE))
    for dotted, value in values.items():
        *sections, key = dotted.split("__")
        target = data
        for section in sections:
            target = target[section]
        if value is None:
            del target[key]
        else:
            target[key] = value
    return yaml.safe_dump(data)


def test_bundled_machines_have_names_and_sources():
    machines = bundled()
    assert {machine.name for machine in machines} == {path.stem for path in FOLDER.glob("*.yaml")}
    assert all(len(machine.source) > 40 for machine in machines)
    told = "\n".join(listing(machines))
    for machine in machines:
        assert f"\n{machine.name}: {machine.title}\n" in told


def test_fitted_constants_are_those_of_the_fits():
    """What stands in the machine files is what the comparison with the papers takes and finds."""
    phase, message = bluegene.fit("MPI")
    network = find_machine("bluegene").network
    assert network.latency_us == pytest.approx(phase, abs=5e-4)
    assert network.per_message_us == pytest.approx(message, abs=5e-4)
    assert network.cable_gb_s * 1e3 == bluegene.LINK_BANDWIDTH
    network, speed = find_machine("fugaku").network, fugaku.SPEED
    assert network.latency_us == pytest.approx(1e6 * speed.latency)
    assert network.per_hop_us == pytest.approx(1e6 * speed.per_hop)
    assert network.cable_gb_s == pytest.approx(1e-9 * speed.bandwidth)
    assert network.latency_us + network.per_message_us == pytest.approx(1e6 * fugaku.MPI_STEP)
    network, speed = find_machine("oakforest").network, genesis.network()
    assert network.per_message_us == pytest.approx(1e6 * speed.per_message, abs=0.05)
    assert network.cable_gb_s == pytest.approx(1e-9 * speed.bandwidth, abs=0.05)


def test_speed_of_a_core():
    """The core of the measurements is the unit; a measured step replaces the ratio of peaks."""
    core = find_machine("infiniband").node.core
    assert core.speed == pytest.approx(1.0)
    own = measured.step_cost(measured.StepSettings())[1][-1] * 1e6
    assert type(core)(name="own", microseconds_per_atom=2 * own).speed == pytest.approx(0.5)


def test_tofu_keeps_neighbours_of_the_grid_of_nodes_together():
    network = tofu_on_grid((3, 4, 2))
    place = np.array(np.unravel_index(np.arange(24), (2, 4, 3)))[::-1]
    assert network.n_nodes == 24 and sorted(network.number) == list(range(24))
    for axis, length in enumerate((3, 4, 2)):
        inside = place[axis] + 1 < length
        beside = place[:, inside].copy()
        beside[axis] += 1
        other = np.ravel_multi_index(tuple(beside[::-1]), (2, 4, 3))
        assert (network.hops(np.flatnonzero(inside), other) == 1).all()
    assert tofu_on_grid((5, 5, 5)) is None


@pytest.mark.parametrize("nodes", [1, 5, 6, 13, 64, 100, 768])
@pytest.mark.parametrize("name", [path.stem for path in FOLDER.glob("*.yaml") if path.stem != "workstation"])
def test_any_number_of_nodes_has_a_place(name, nodes):
    """Also where nodes fill no whole switch, group, cell or block."""
    network = find_machine(name).network.topology(nodes, (nodes,))
    assert network.n_nodes >= nodes
    source, target = np.divmod(np.arange(nodes**2), nodes)
    assert (network.hops(source, target)[source != target] > 0).all()
    assert network.worst_load(source, target, np.where(source == target, 0.0, 1.0)) >= (nodes > 1)


@pytest.mark.parametrize(("text", "told"), [
    (changed(network__cable_gb_s=-3), "network.cable_gb_s = -3 should be greater than 0"),
    (changed(network__kind="hypercube"), "network.kind = 'hypercube' should be one of"),
    (changed(network__kind=None), "network.kind is missing"),
    (changed(network__nodes_per_switch=None), "network.nodes_per_switch is missing"),
    (changed(node__core={"name": "x", "clock_ghz": 2.0}), "needs either microseconds_per_atom"),
    (changed(node__cores=0), "node.cores = 0"),
    (changed(node__memory_gb=float("inf")), "node.memory_gb = inf"),
    (changed(sources="a book"), "unknown key sources"),
    (changed(source=None), "source is missing"),
    (changed(network={"kind": "none", "latency_us": 1, "per_message_us": 1}), "describe the network"),
    ("name: [\n", "line 2 is not valid YAML"),
    ("only words\n", "holds no machine"),
])
def test_a_bad_machine_file_is_told_in_one_sentence(tmp_path, text, told):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(BadInputError) as error:
        find_machine(str(path))
    sentence = str(error.value)
    assert told in sentence and str(path) in sentence and "\n" not in sentence


def test_an_unknown_machine_names_the_known_ones(tmp_path):
    with pytest.raises(BadInputError, match="infiniband, oakforest"):
        find_machine("roadrunner")
    with pytest.raises(BadInputError, match="does not exist"):
        find_machine(str(tmp_path / "none.yaml"))
