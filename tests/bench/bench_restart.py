# SPDX-License-Identifier: BSD-3-Clause
"""How long a killed collector takes from its restart to the first acknowledgement, with journals of two lengths, and the
same without checkpoints:

    bench_restart.py [RECORDS [WORKERS]]    for the longer journal; the other one has a quarter of the records
"""

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_swarm import BUILD, ROOT, Collector
from budgets import judge

sys.path.insert(0, str(ROOT / "tests" / "integration"))

import frames
import sealed


def frame_at(data, at):
    """(type, bytes)"""
    return data[at + 5], frames.HEAD.size + struct.unpack_from("<I", data, at + 48)[0]


def strip(journal):
    """Removes the checkpoints, which follow a file's header."""
    for path in journal.glob("*.crema"):
        data = path.read_bytes()
        begin = end = frame_at(data, 0)[1]
        while end < len(data) and frame_at(data, end)[0] == frames.CHECKPOINT:
            end += frame_at(data, end)[1]
        path.write_bytes(data[:begin] + data[end:])


def begin(directory):
    """Seconds until an agent's record was acknowledged, and CPU seconds, of the better of two starts; the collector's peak memory in MiB."""
    journal, best = Path(directory) / "journal" / "journal", None
    was = set(journal.iterdir())
    for _ in range(2):
        began = time.monotonic()
        collector = Collector(directory)
        worker = time.time_ns().to_bytes(16, "little")
        agent = sealed.Agent(int(collector.target.rpartition(":")[2]), (Path(directory) / "token").read_bytes().strip(), worker)
        agent.send(frames.frame(frames.HELLO, {"facts": {}, "task_fields": frames.names()}, worker))
        agent.expect(frames.WELCOME)
        agent.send(frames.frame(frames.DATA, [[8, {"boot_ns": 1}]], worker, 0, 1))
        agent.expect(frames.ACK)
        took, process = time.monotonic() - began, Path(f"/proc/{collector.process.pid}")
        cpu = sum(map(int, (process / "stat").read_text().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
        peak = next(int(line.split()[1]) for line in (process / "status").read_text().splitlines() if line.startswith("VmHWM"))
        collector.process.kill()
        collector.process.wait()
        for path in set(journal.iterdir()) - was:  # the new segment starts with a checkpoint
            path.unlink()
        best = min(best or (took, cpu, peak / 1024), (took, cpu, peak / 1024))
    return best


def measure(records, workers):
    directory = tempfile.mkdtemp(prefix="crema-restart-")
    try:
        collector = Collector(directory)
        subprocess.run([BUILD / "tests" / "bench" / "swarm" / "swarm", "--to", collector.target, "--http", collector.http, "--pid",
                        str(collector.process.pid), "--workers", str(workers), "--records", str(records), "--shared"],
                       env=collector.env, check=True, stdout=subprocess.DEVNULL)
        said = collector.status()
        collector.process.kill()
        collector.process.wait()
        got = begin(directory)
        strip(Path(directory) / "journal" / "journal")
        return said["records"], said["journal"]["segments"], got, begin(directory)
    finally:
        shutil.rmtree(directory)


def main():
    records, workers = (int(arg) for arg in [*sys.argv[1:3], *("1600000", "500")[len(sys.argv) - 1:]])
    cpu = []
    for of in (records // 4, records):
        got, segments, there, stripped = measure(of, workers)
        said = ["{:.2f} s ({:.2f} s of CPU, {:.0f} MiB)".format(*of) for of in (there, stripped)]
        print(f"{got} records of {workers} workers in {segments} segments: first acknowledgement after {said[0]}, without checkpoints "
              f"after {said[1]}: {there[0] / stripped[0]:.3f} of the time", flush=True)
        cpu.append(max(there[1], 0.1))  # less is within a clock tick or two
    judge("CPU of a start with 4 x the records", cpu[1] / cpu[0], 2, "x", "docs/scale.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
