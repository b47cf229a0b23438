"""Runs tests/bench/swarm: simulated workers that speak the real protocol to a real collector."""

import json
import subprocess

import cluster
import frames

SWARM = cluster.BUILD / "tests" / "bench" / "swarm" / "swarm"


def build():
    subprocess.run(["make", "-C", str(cluster.ROOT), str(SWARM.relative_to(cluster.ROOT))], check=True, capture_output=True)


class Swarm(subprocess.Popen):
    """swarm --FLAG VALUE ... for each of `options` (True: a flag without a value)."""

    def __init__(self, procs, directory, **options):
        self.json, self.log = directory / "swarm.json", directory / "swarm.log"
        flags = [f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items()]
        with open(self.log, "w") as log:
            super().__init__([SWARM, "--to", procs.target, "--pid", str(procs.collector.pid), "--json", self.json,
                              "--http", f"127.0.0.1:{procs.http_port}", *flags],
                             env=procs.env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def result(self):
        """Its counts; everything must have been acknowledged."""
        status = self.wait(timeout=200)
        assert status == 0, self.log.read_text()
        return json.loads(self.json.read_text())


def segments(directory):
    """The files of frames in the directory, in order; footers have the same names in a separate folder."""
    return sorted(path for path in directory.rglob("*.crema") if path.parent.name != "footers")


def journaled(directory):
    """{worker: [(first number, count), ...]} of the DATA frames in a journal, in the order of the files."""
    found = {}
    for path in segments(directory):
        data, at = path.read_bytes(), 0
        while at < len(data):
            head = frames.HEAD.unpack_from(data, at)
            kind, worker, seq, count, stored = head[2], head[4], head[6], head[7], head[9]
            if kind == frames.DATA:
                found.setdefault(worker, []).append((seq, count))
            at += frames.HEAD.size + stored
    return found


def is_whole(parts):
    """Each number from 0 to the last occurs once."""
    end = 0
    for seq, count in sorted(parts):
        if seq != end:
            return False
        end += count
    return True
