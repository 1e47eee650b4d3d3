"""Two nodes under Slurm on one machine (module nodes). Needs root and, on Debian, the packages of ``PACKAGES``."""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from common import nodes
from common.nodes import NODES, call, path_of

PACKAGES = "slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge iproute2"
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged", "ip", "unshare", "nsenter")
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
    return nodes.missing(PROGRAMS, PACKAGES)


def version() -> str:
    """Of Slurm."""
    told = subprocess.run([path_of("slurmd") or "slurmd", "-V"], capture_output=True, text=True, check=True).stdout
    return told.split()[-1]


class Cluster(nodes.Pair):
    """``slurmctld`` and the first ``slurmd`` on node1, the second ``slurmd`` on node2."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables for programs that talk to Slurm."""
        return super().environment | {"SLURM_CONF": str(self.folder / "slurm.conf")}

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

    def revive(self, name: str) -> None:
        """A node that lost its power starts again."""
        self.start_node(name)
        self.join()
        self.start_slurmd(name)
        self.wait_for({"idle", "mix", "alloc"}, [name])

    def start_slurmd(self, name: str) -> None:
        """The daemon of a node."""
        call(*self.nodes[name].inside([path_of("slurmd") or "slurmd", "-N", name]), env=self.environment)


@contextmanager
def two_nodes(folder: Path, cpus: int = 4) -> Iterator[Cluster]:
    """A cluster of two nodes of ``cpus`` processors each; its logs are in ``folder``. All ends with the context."""
    cluster = Cluster(folder)
    cluster.prepare()
    (folder / "state").mkdir(exist_ok=True)
    (folder / "slurm.conf").write_text(CONFIGURATION.format(folder=folder, cpus=cpus))
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    try:
        for name in NODES:
            cluster.start_node(name)
        cluster.join()
        call(*cluster.nodes["node1"].inside([
            path_of("munged") or "munged", "--force", f"--key-file={folder}/munge.key",
            f"--socket={folder}/munge.socket", f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log",
            f"--seed-file={folder}/munge.seed"]))
        call(*cluster.nodes["node1"].inside([path_of("slurmctld") or "slurmctld", "-i"]), env=cluster.environment)
        for name in NODES:
            cluster.start_slurmd(name)
        cluster.wait_for({"idle"})
        yield cluster
    finally:
        cluster.stop()
