"""Machines as data files: cores and memory of a node, the network, and where the numbers come from.

The bundled ones lie in machines/; a user's own file has the same keys. Units stand in the names of the keys.
"""

import re
import textwrap
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from chromabuild.base.errors import BadInputError
from chromabuild.scaling import measured
from chromabuild.scaling.cost import NetworkSpeed, Topology
from chromabuild.scaling.topology import Dragonfly, FatTree, Torus, tofu, tofu_on_grid

FOLDER = Path(__file__).parent / "machines"
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


class Core(_Section):
    """A core, and how fast chromamd is on it: measured there, or scaled by the peak in single precision."""

    name: str
    clock_ghz: Positive | None = None
    single_flops_per_cycle: Positive | None = None
    microseconds_per_atom: Positive | None = Field(
        None, description="a step of the largest box of benchmarks/measure_step.py, on one core")

    @model_validator(mode="after")
    def _has_a_speed(self) -> "Core":
        if self.microseconds_per_atom is None and None in (self.clock_ghz, self.single_flops_per_cycle):
            raise ValueError("needs either microseconds_per_atom, or clock_ghz and single_flops_per_cycle")
        return self

    @property
    def speed(self) -> float:
        """Over the core on which the steps were measured."""
        if self.microseconds_per_atom is not None:
            return 1e6 * float(measured.step_cost(measured.StepSettings())[1][-1]) / self.microseconds_per_atom
        return self.clock_ghz * self.single_flops_per_cycle / measured.core().gigaflops


class Node(_Section):
    """`memory_bandwidth_gb_s`: of copies between ranks of a node, all together."""

    cores: Count
    memory_gb: Positive
    memory_bandwidth_gb_s: Positive
    core: Core


class _Network(_Section):
    """`per_message_us`: sender's and receiver's work together; `cable_gb_s`: each way."""

    latency_us: float = Field(ge=0)
    per_message_us: float = Field(ge=0)
    per_hop_us: float = Field(ge=0)
    cable_gb_s: Positive


class FatTreeNetwork(_Network):
    """Switches of `nodes_per_switch` nodes under a layer of others; `taper`: nodes over cables that leave a switch."""

    kind: Literal["fat tree"]
    nodes_per_switch: Count
    taper: float = Field(1.0, ge=1)

    def topology(self, nodes: int, node_grid: tuple[int, ...]) -> Topology:
        here = min(nodes, self.nodes_per_switch)
        return FatTree((here, -(-nodes // here)), (1.0, self.taper))


class DragonflyNetwork(_Network):
    """Groups of `routers`, each with `nodes_per_router` nodes and `optical` cables to other groups."""

    kind: Literal["dragonfly"]
    routers: Count
    nodes_per_router: Count
    optical: Count

    def topology(self, nodes: int, node_grid: tuple[int, ...]) -> Topology:
        groups = -(-nodes // (self.routers * self.nodes_per_router))
        routers = min(self.routers, -(-nodes // self.nodes_per_router))
        return Dragonfly(groups, routers, self.nodes_per_router, self.optical)


class TorusNetwork(_Network):
    """A ring along each of three axes, routed along x, then y, then z; the job has a block of its own."""

    kind: Literal["torus"]

    def topology(self, nodes: int, node_grid: tuple[int, ...]) -> Topology:
        return Torus(node_grid if len(node_grid) == 3 else _even_split(nodes), orders="one")


class TofuNetwork(_Network):
    """TofuD: a torus of cells of 2 x 3 x 2 nodes; a job has whole cells."""

    kind: Literal["tofu"]

    def topology(self, nodes: int, node_grid: tuple[int, ...]) -> Topology:
        on_grid = tofu_on_grid(node_grid) if len(node_grid) == 3 else None
        return on_grid or tofu(_even_split(-(-nodes // 12)))


class NoNetwork(_Section):
    """One node: its ranks exchange through memory."""

    kind: Literal["none"]
    latency_us: float = Field(ge=0)
    per_message_us: float = Field(ge=0)

    def topology(self, nodes: int, node_grid: tuple[int, ...]) -> Topology:
        return FatTree((1,))


Network = Annotated[FatTreeNetwork | DragonflyNetwork | TorusNetwork | TofuNetwork | NoNetwork,
                    Field(discriminator="kind")]


class Machine(_Section):
    """A machine file. `tables`: the published measurements of this machine or of its kind of network."""

    name: str
    title: str
    source: str
    tables: Literal["Blue Gene/L", "QCDOC", "Fugaku", "GENESIS"] | None = None
    nodes: Count
    node: Node
    network: Network

    @model_validator(mode="after")
    def _one_node_without_network(self) -> "Machine":
        if isinstance(self.network, NoNetwork) and self.nodes != 1:
            raise ValueError("has nodes > 1, but network.kind = none: describe the network")
        return self

    @property
    def blocks(self) -> bool:
        """Whether ranks are placed in blocks of neighbouring domains, as [COMM] torus does."""
        return self.network.kind in ("torus", "tofu")

    @property
    def speed(self) -> NetworkSpeed:
        network = self.network
        return NetworkSpeed(
            latency=1e-6 * network.latency_us, per_message=1e-6 * network.per_message_us,
            per_hop=1e-6 * getattr(network, "per_hop_us", 0.0),
            bandwidth=1e9 * getattr(network, "cable_gb_s", self.node.memory_bandwidth_gb_s),
            memory_bandwidth=1e9 * self.node.memory_bandwidth_gb_s)


def bundled() -> list[Machine]:
    """The machines that come with chromabuild, by name."""
    return [read_machine(path) for path in sorted(FOLDER.glob("*.yaml"))]


def find_machine(name: str) -> Machine:
    """A bundled machine by its name, or the machine of a file (a name with .yaml, .yml or a folder in it).

    Raises BadInputError when there is none, or the file is not a machine's.
    """
    if Path(name).suffix in (".yaml", ".yml") or "/" in name:
        return read_machine(Path(name))
    path = FOLDER / f"{name}.yaml"
    if not path.is_file():
        names = ", ".join(sorted(path.stem for path in FOLDER.glob("*.yaml")))
        raise BadInputError(f"there is no machine {name}: name one of {names}, or a file ending in .yaml")
    return read_machine(path)


def read_machine(path: Path) -> Machine:
    """Read and check a machine file. Raises BadInputError with one sentence."""
    remedy = f"compare it with {FOLDER / 'infiniband.yaml'}"
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInputError(f"{path} does not exist: `chromabuild plan --machine list` names bundled ones") from None
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}): name a machine file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise BadInputError(f"{path}{line} is not valid YAML: {remedy}") from None
    if not isinstance(data, dict):
        raise BadInputError(f"{path} holds no machine: {remedy}")
    try:
        return Machine.model_validate(data)
    except ValidationError as error:
        raise BadInputError(f"{path}: {_sentence(error)}; {remedy}") from None


def _sentence(error: ValidationError) -> str:
    """The first complaint, with its key and value."""
    first = error.errors()[0]
    # Pydantic puts the kind of network into the path of its keys.
    kinds = {"fat tree", "dragonfly", "torus", "tofu", "none"}
    key = ".".join(str(part) for part in first["loc"] if part not in kinds)
    if first["type"] == "extra_forbidden":
        return f"unknown key {key}"
    if first["type"] == "missing":
        return f"{key} is missing"
    if first["type"] == "union_tag_invalid":
        return f"{key}.kind = {first['input'].get('kind')!r} should be one of {', '.join(sorted(kinds))}"
    if first["type"] == "union_tag_not_found":
        return f"{key}.kind is missing"
    message = re.sub(r"^(Input|Value error,|Value) ?", "", first["msg"])
    if first["type"] == "value_error":
        return f"{key or 'the machine'} {message}"
    return f"{key} = {first['input']!r} {message}"


def _even_split(n: int) -> tuple[int, int, int]:
    """Three factors of n with the least sum, ascending."""
    divisors = [k for k in range(1, n + 1) if n % k == 0]
    return min(((a, b, n // a // b) for a in divisors for b in divisors if n % (a * b) == 0 and a <= b <= n // a // b),
               key=sum)


def listing(machines: list[Machine]) -> list[str]:
    """Machines for people: nodes, cores, memory, speed of a core, title and source."""
    width, core = max(len(machine.name) for machine in machines), measured.core()
    lines = [f"{'machine':<{width}}   nodes  cores  GB a node  core speed  network"]
    for machine in machines:
        node = machine.node
        lines.append(f"{machine.name:<{width}}{machine.nodes:8,d}{node.cores:7d}{node.memory_gb:11g}{node.core.speed:12.2g}"
                     f"  {machine.network.kind}")
    lines += ["", f"Core speed: over one core of {core.name}, {core.clock_ghz:g} GHz, {core.instruction_set}."]
    for machine in machines:
        source = textwrap.wrap(machine.source, 100, initial_indent="  ", subsequent_indent="  ")
        lines += ["", f"{machine.name}: {machine.title}", *source]
    return lines
