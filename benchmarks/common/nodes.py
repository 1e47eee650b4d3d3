"""Nodes on one machine: network namespaces joined by a pair of virtual Ethernet devices, the cable.

Each node has processes, devices of shared memory, a host name and an address of its own; files are shared. MPI programs
see two machines with TCP between them. Needs root and, on Debian, the packages of ``PACKAGES``.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PACKAGES = "iproute2 util-linux"
PROGRAMS = ("ip", "tc", "unshare", "nsenter")
NODES = {"node1": "10.77.0.1", "node2": "10.77.0.2"}


def missing(programs: Sequence[str] = PROGRAMS, packages: str = PACKAGES) -> str | None:
    """Why two nodes cannot be had here, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    absent = [name for name in programs if path_of(name) is None]
    return f"{', '.join(absent)} not found: apt-get install {packages}" if absent else None


def path_of(program: str) -> str | None:
    """Where a program lies, those of the administrator included."""
    return shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def call(*command: str | Path, env: dict[str, str] | None = None) -> None:
    """Run a command. Raises RuntimeError with what it said where it fails."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, env=env)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: code {done.returncode}\n{done.stdout}{done.stderr}")


@dataclass
class Node:
    """A node, by the first process of its namespaces."""

    name: str
    keeper: subprocess.Popen
    init: int

    def inside(self, command: Sequence[str | Path]) -> list[str]:
        """The command line that runs ``command`` on this node."""
        namespaces = ["-t", str(self.init), "-m", "-u", "-n", "-p"]
        return ["nsenter", *namespaces, f"--wd={os.getcwd()}", "--", *map(str, command)]

    def stop(self) -> None:
        """All processes of the node end."""
        os.kill(self.init, signal.SIGKILL)
        self.keeper.wait()

    def lose_power(self) -> None:
        """The node falls silent: its cable is cut before its processes end, so that no connection is closed."""
        call(*self.inside(["ip", "link", "set", "cable", "down"]))
        self.stop()


@dataclass
class Pair:
    """Two nodes with their cable; ``folder/private`` is a folder that each has for itself."""

    folder: Path
    nodes: dict[str, Node] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Variables for MPI programs of several nodes."""
        # Debian's Open MPI switches off its one-sided messages over TCP (component pt2pt of osc).
        return os.environ | {
            "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin", "OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_osc": "^ucx"}

    def prepare(self) -> None:
        """The files that the nodes need."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "private").mkdir(exist_ok=True)
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n"
                                           + "".join(f"{ip} {name}\n" for name, ip in NODES.items()))

    def start_node(self, name: str) -> None:
        """A node, new or in place of one that died. Its first process runs the lines that come through a pipe."""
        pipe = self.folder / f"{name}.pipe"
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        keeper = subprocess.Popen(
            ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
             f"hostname {name} && ip link set lo up && mount -t tmpfs -o size=2g tmpfs /dev/shm "
             f"&& mount -t tmpfs tmpfs {self.folder}/private && mount --bind {self.folder}/hosts /etc/hosts "
             f'&& echo ready && while true; do read -r line < {pipe}; sh -c "$line" & done'],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert keeper.stdout is not None
        if keeper.stdout.readline() != "ready\n":
            raise RuntimeError(f"namespaces of {name} could not be made: is this a container without the right to?")
        init = int(Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children").read_text().split()[0])
        self.nodes[name] = Node(name, keeper, init)

    def join(self) -> None:
        """The cable between the nodes."""
        first, second = (self.nodes[name] for name in NODES)
        # That of a node that lost its power hangs about for a while.
        subprocess.run(first.inside(["ip", "link", "delete", "cable"]), stderr=subprocess.DEVNULL, check=False)
        call("ip", "link", "add", "cable", "netns", str(first.init), "type", "veth", "peer", "name", "cable", "netns",
             str(second.init))
        for node in (first, second):
            call(*node.inside(["ip", "address", "add", f"{NODES[node.name]}/24", "dev", "cable"]))
            call(*node.inside(["ip", "link", "set", "cable", "up"]))
            # As on networks for MPI, nothing waits 40 ms for a delayed acknowledgement or starts slowly after a pause.
            call(*node.inside(["ip", "route", "replace", "10.77.0.0/24", "dev", "cable", "quickack", "1", "initcwnd",
                               "200", "initrwnd", "200"]))
            call(*node.inside(["sh", "-c", "echo 0 > /proc/sys/net/ipv4/tcp_slow_start_after_idle"]))

    def limit(self, megabits: float) -> None:
        """The bandwidth of the cable in each direction, megabit/s; 0: as fast as memory."""
        for node in self.nodes.values():
            subprocess.run(node.inside(["tc", "qdisc", "delete", "dev", "cable", "root"]), stderr=subprocess.DEVNULL,
                           check=False)
            if megabits:
                # The bucket must hold the largest packet, of 64 kB.
                call(*node.inside(["tc", "qdisc", "add", "dev", "cable", "root", "tbf", "rate", f"{megabits}mbit",
                                   "burst", "256kb", "latency", "200ms"]))

    def mpirun(self, ranks: int, command: Sequence[str | Path], scatter: bool = False,
               environment: dict[str, str] | None = None, timeout: float = 600) -> str:
        """What an MPI program prints that runs on both nodes, the first half of the ranks on the first or, with
        ``scatter``, every second. Raises RuntimeError where it fails."""
        # In place of ssh: its arguments are a host and a command.
        agent = self.folder / "agent.sh"
        agent.write_text(f'#!/bin/sh\nhost=$1\nshift\necho "$*" > {self.folder}/$host.pipe\n')
        agent.chmod(0o755)
        half = (ranks + 1) // 2
        hosts = ",".join(f"{name}:{half}" for name in NODES)
        parameters = {"plm": "rsh", "plm_rsh_agent": agent, "btl_tcp_if_include": "cable",
                      "oob_tcp_if_include": "cable", "pml": "ob1", "btl": "self,vader,tcp",
                      "orte_tmpdir_base": self.folder / "private"}
        launch = ["mpirun", "--host", hosts, "--map-by", "node" if scatter else "slot", "--oversubscribe", "--bind-to",
                  "none", "-np", ranks]
        for name, value in parameters.items():
            launch += ["--mca", name, value]
        for name in environment or {}:
            launch += ["-x", name]
        line = self.nodes["node1"].inside([*map(str, launch), *map(str, command)])
        done = subprocess.run(line, capture_output=True, text=True, timeout=timeout, check=False,
                              env=self.environment | (environment or {}))
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def stop(self) -> None:
        """All ends."""
        for node in self.nodes.values():
            if node.keeper.poll() is None:
                node.stop()


@contextmanager
def two_namespaces(folder: Path) -> Iterator[Pair]:
    """Two nodes and their cable; all ends with the context."""
    pair = Pair(folder)
    pair.prepare()
    try:
        for name in NODES:
            pair.start_node(name)
        pair.join()
        yield pair
    finally:
        pair.stop()
