"""Two nodes under Slurm on one machine: network namespaces joined by a pair of virtual Ethernet devices.

Each node has processes, devices of shared memory, a host name and an address of its own; files are shared. MPI programs
see two machines with TCP between them. Needs root and, on Debian, the packages of ``PACKAGES``.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PACKAGES = "slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge iproute2"
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged", "ip", "unshare", "nsenter")
NODES = {"node1": "10.77.0.1", "node2": "10.77.0.2"}
CONFIGURATION = """ClusterName=two
SlurmctldHost=node1(10.77.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/private
TmpFS={folder}/private
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=pmix
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SlurmdTimeout=10
BatchStartTimeout=10
MessageTimeout=5
KillWait=30
ReturnToService=2
SchedulerParameters=bf_interval=1,sched_min_interval=500000
NodeName=node1 NodeAddr=10.77.0.1 CPUs={cpus} State=UNKNOWN
NodeName=node2 NodeAddr=10.77.0.2 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """Why two nodes cannot be had here, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    absent = [name for name in PROGRAMS if _path(name) is None]
    return f"{', '.join(absent)} not found: apt-get install {PACKAGES}" if absent else None


def _path(name: str) -> str | None:
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def version() -> str:
    """Of Slurm."""
    told = subprocess.run([_path("slurmd") or "slurmd", "-V"], capture_output=True, text=True, check=True).stdout
    return told.split()[-1]


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
        _call(*self.inside(["ip", "link", "set", "cable", "down"]))
        self.stop()


@dataclass
class Cluster:
    """``slurmctld`` and the first ``slurmd`` on node1, the second ``slurmd`` on node2."""

    folder: Path
    nodes: dict[str, Node]

    @property
    def environment(self) -> dict[str, str]:
        """Variables for programs that talk to Slurm."""
        # Debian's Open MPI switches off its one-sided messages over TCP (component pt2pt of osc).
        return os.environ | {
            "SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
            "OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_osc": "^ucx"}

    def run(self, *command: str | Path, timeout: float = 600, check: bool = True,
            cwd: Path | None = None) -> subprocess.CompletedProcess:
        """Run a command on node1, as a user who is logged in there."""
        line = self.nodes["node1"].inside(command)
        if cwd is not None:
            line = [f"--wd={cwd}" if word.startswith("--wd=") else word for word in line]
        done = subprocess.run(line, capture_output=True, text=True, timeout=timeout, env=self.environment, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def states(self) -> dict[str, str]:
        """What Slurm says of each node."""
        lines = self.run("sinfo", "-N", "-h", "-o", "%N %t", timeout=30).stdout.split()
        return dict(zip(lines[::2], lines[1::2], strict=True))

    def wait_for(self, states: set[str], nodes: Sequence[str] = tuple(NODES), seconds: float = 60) -> None:
        """Until Slurm says one of ``states`` of all ``nodes``."""
        end = time.monotonic() + seconds
        while True:
            found = self.states()
            if all(found.get(name, "").rstrip("*") in states for name in nodes):
                return
            if time.monotonic() > end:
                raise RuntimeError(f"nodes are {found}, not {states}: see {self.folder}/slurmctld.log")
            time.sleep(0.2)

    def start_node(self, name: str) -> None:
        """A node, new or in place of one that died, with its slurmd and its end of the cable."""
        keeper = subprocess.Popen(
            ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
             f"hostname {name} && ip link set lo up && mount -t tmpfs -o size=2g tmpfs /dev/shm "
             f"&& mount -t tmpfs tmpfs {self.folder}/private && mount --bind {self.folder}/hosts /etc/hosts "
             "&& echo ready && exec sleep infinity"],
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
        _call("ip", "link", "add", "cable", "netns", str(first.init), "type", "veth", "peer", "name", "cable", "netns",
              str(second.init))
        for node in (first, second):
            _call(*node.inside(["ip", "address", "add", f"{NODES[node.name]}/24", "dev", "cable"]))
            _call(*node.inside(["ip", "link", "set", "cable", "up"]))

    def revive(self, name: str) -> None:
        """A node that lost its power starts again."""
        self.start_node(name)
        self.join()
        self.start_slurmd(name)
        self.wait_for({"idle", "mix", "alloc"}, [name])

    def start_slurmd(self, name: str) -> None:
        """The daemon of a node."""
        _call(*self.nodes[name].inside([_path("slurmd") or "slurmd", "-N", name]), env=self.environment)


def _call(*command: str, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: code {done.returncode}\n{done.stdout}{done.stderr}")


@contextmanager
def two_nodes(folder: Path, cpus: int = 4) -> Iterator[Cluster]:
    """A cluster of two nodes of ``cpus`` processors each; its logs are in ``folder``. All ends with the context."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("state", "private"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "slurm.conf").write_text(CONFIGURATION.format(folder=folder, cpus=cpus))
    (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{ip} {name}\n" for name, ip in NODES.items()))
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    cluster = Cluster(folder, {})
    try:
        for name in NODES:
            cluster.start_node(name)
        cluster.join()
        _call(*cluster.nodes["node1"].inside([
            _path("munged") or "munged", "--force", f"--key-file={folder}/munge.key", f"--socket={folder}/munge.socket",
            f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"]))
        _call(*cluster.nodes["node1"].inside([_path("slurmctld") or "slurmctld", "-i"]), env=cluster.environment)
        for name in NODES:
            cluster.start_slurmd(name)
        cluster.wait_for({"idle"})
        yield cluster
    finally:
        for node in cluster.nodes.values():
            if node.keeper.poll() is None:
                node.stop()
