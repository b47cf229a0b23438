"""Batch systems on this machine: Debian's Slurm and HTCondor with one node each, which stop as soon as the block ends.

Their daemons listen on free ports of 127.0.0.1 and keep all files in a folder of the test. `env` is what a user's shell
would have; `as_user` comes before a user's command.
"""

import contextlib
import os
import pwd
import socket
import subprocess

import cluster
import packages

NAMES = {"slurm": ["munge", "slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins"], "condor": ["condor"]}
COMMANDS = {"slurm": ["sbatch", "scancel", "scontrol", "sinfo", "squeue"],
            "condor": ["condor_q", "condor_rm", "condor_status", "condor_submit", "condor_vacate_job"]}
NOBODY = 65534
CORES, MEMORY_MB = 4, 8000


def unpacked(system, folder, *folders):
    """Where this batch system is; makes these folders for its files."""
    for name in folders:
        (folder / name).mkdir(mode=0o755)
    return packages.of_debian(system, NAMES[system], NAMES[system])


def path_of(system, place, folder):
    """A folder for PATH with the user's commands: the one where they are has programs that do not run on this machine."""
    made = folder / "bin"
    made.mkdir()
    for name in COMMANDS[system]:
        (made / name).symlink_to(place / "usr" / "bin" / name)
    return made


def freezer():
    """Whether processes can be grouped by cgroups here."""
    return os.access("/sys/fs/cgroup/freezer", os.W_OK) and os.path.ismount("/sys/fs/cgroup/freezer")


@contextlib.contextmanager
def daemons(folder, env):
    """A function that starts a daemon; they are stopped, the newest first."""
    with contextlib.ExitStack() as running:
        def start(name, *argv):
            process = cluster.Process(name, argv, folder / f"{name}.log", env=env, cwd=folder)
            running.callback(process.stop)
            return process

        yield start


SLURM = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
PluginDir={plugins}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/{track}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory={memory}
PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class System:
    as_user = ()

    def __init__(self, place, env):
        self.place, self.env = place, env

    def run(self, *argv):
        """What a user's command prints."""
        done = subprocess.run([*self.as_user, *argv], env=self.env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout


class Slurm(System):
    title = "dask-jobqueue: Slurm"
    killed = ("killed",)  # how a task ends whose job is killed
    address = "login.example.org:8990"

    def is_ready(self):
        done = subprocess.run(["sinfo", "-h", "-o", "%T"], env=self.env, capture_output=True, text=True)
        return done.stdout.strip() == "idle"

    def kill(self, job):
        """SIGTERM to its first process, as at its time limit; Dask kills the worker, whose task goes on, after 8 s."""
        self.run("scancel", job)


@contextlib.contextmanager
def slurm(folder, env):
    place = unpacked("slurm", folder, "state", "spool", "munge")
    (folder / "munge" / "key").write_bytes(os.urandom(128))
    (folder / "munge" / "key").chmod(0o600)
    (plugins,) = place.glob("usr/lib/*/slurm-wlm")
    sbin = place / "usr" / "sbin"
    for name in ("slurmctld", "slurmd", "slurmstepd"):  # they ask for their own name
        (sbin / name).unlink(missing_ok=True)
        (sbin / name).symlink_to(f"{name}-wlm")
    grouped = freezer()
    (folder / "slurm.conf").write_text(SLURM.format(
        host=socket.gethostname(), ports=[cluster.free_port(), cluster.free_port()], user=pwd.getpwuid(os.getuid()).pw_name,
        folder=folder, plugins=plugins, track="cgroup" if grouped else "linuxproc", cores=CORES, memory=MEMORY_MB))
    (folder / "cgroup.conf").write_text("CgroupPlugin=" + ("cgroup/v1\n" if grouped else "disabled\n"))
    env = env | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": f"{path_of('slurm', place, folder)}:{env['PATH']}"}
    files = [f"--{name}={folder}/munge/{file}" for name, file in
             (("socket", "socket"), ("key-file", "key"), ("pid-file", "pid"), ("seed-file", "seed"), ("log-file", "log"))]
    with daemons(folder, env) as start:
        munge = start("munged", sbin / "munged", "-F", "--force", *files)
        cluster.wait_until((folder / "munge" / "socket").exists, "munged", 60, [munge])
        both = [start("slurmctld", sbin / "slurmctld", "-D"), start("slurmd", sbin / "slurmd", "-D", "-d", sbin / "slurmstepd")]
        made = Slurm(place, env)
        cluster.wait_until(made.is_ready, "Slurm", 60, both)
        yield made


CONDOR = """
RELEASE_DIR = {place}/usr
BIN = $(RELEASE_DIR)/bin
SBIN = $(RELEASE_DIR)/sbin
LIB = $(RELEASE_DIR)/lib/condor
LIBEXEC = $(RELEASE_DIR)/libexec/condor
LOCAL_DIR = {folder}
RUN = $(LOCAL_DIR)
LOG = $(LOCAL_DIR)/log
SPOOL = $(LOCAL_DIR)/spool
EXECUTE = $(LOCAL_DIR)/execute
LOCK = $(LOCAL_DIR)/lock
CONDOR_HOST = 127.0.0.1
RUNBENCHMARKS = False
BENCHMARKS_JOBLIST =
NETWORK_INTERFACE = 127.0.0.1
NO_DNS = true
DEFAULT_DOMAIN_NAME = test
COLLECTOR_HOST = 127.0.0.1:0
COLLECTOR_ADDRESS_FILE = $(LOG)/.collector_address
USE_SHARED_PORT = false
DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD
SEC_DEFAULT_AUTHENTICATION = OPTIONAL
SEC_DEFAULT_AUTHENTICATION_METHODS = FS
ALLOW_READ = *
ALLOW_WRITE = *
ALLOW_DAEMON = *
ALLOW_NEGOTIATOR = *
ALLOW_ADMINISTRATOR = *
START = true
SUSPEND = false
PREEMPT = false
KILL = false
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_MIN_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
SCHEDD_INTERVAL = 2
SCHEDD_MIN_INTERVAL = 1
UPDATE_INTERVAL = 5
NUM_CPUS = {cores}
MEMORY = {memory}
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = true
SEC_KNOWN_HOSTS = {folder}/known_hosts
STARTER_JOB_ENVIRONMENT = "HOME={folder}/home"
"""


class Condor(System):
    title = "dask-jobqueue: HTCondor"
    killed = ("killed", "lost")
    address = "submit.example.org:8990"
    # HTCondor refuses root's jobs. In a namespace of its own root is a user without rights, whose files stay its own. Jobs have no
    # HOME by default, and nobody's is no place for files.
    as_user = ("unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}") if os.getuid() == 0 else ()

    def is_ready(self):
        done = subprocess.run([*self.as_user, "condor_status", "-af", "State"], env=self.env, capture_output=True, text=True)
        return done.stdout.split() == ["Unclaimed"]

    def kill(self, job):
        """SIGKILL to all of its processes, as for a job that has to make room for another user's; HTCondor starts it again."""
        self.run("condor_vacate_job", "-fast", job)


@contextlib.contextmanager
def condor(folder, env):
    place = unpacked("condor", folder, "log", "spool", "execute", "lock", "home")
    (folder / "condor_config").write_text(CONDOR.format(place=place, folder=folder, cores=CORES, memory=MEMORY_MB))
    env = env | {"CONDOR_CONFIG": str(folder / "condor_config"), "PATH": f"{path_of('condor', place, folder)}:{env['PATH']}"}
    with daemons(folder, env) as start:
        master = start("condor_master", *Condor.as_user, place / "usr/sbin/condor_master", "-f")
        made = Condor(place, env)
        cluster.wait_until(made.is_ready, "HTCondor", 90, [master])
        yield made


SYSTEMS = {"slurm": slurm, "condor": condor}
