"""What hosts read and wrote on networks and disks, against /proc; with two collectors both have it."""

import os
import socket
import time
from pathlib import Path

import crema
import pytest
from distributed import Client

METRICS = ("host_net_read_bytes", "host_net_write_bytes", "host_disk_read_bytes", "host_disk_write_bytes")


def counters():
    """Sums over all hardware interfaces (if there are none, all but loopback) and all whole devices, in the order of METRICS."""
    net = {}
    for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
        name, _, numbers = line.partition(":")
        net[name.strip()] = [int(n) for n in numbers.split()]
    net.pop("lo")
    hardware = {n: row for n, row in net.items() if os.path.exists(f"/sys/class/net/{n}/device")} or net
    disks = [line.split() for line in Path("/proc/diskstats").read_text().splitlines()]
    whole = [d for d in disks if os.path.exists(f"/sys/block/{d[2]}") and not d[2].startswith(("loop", "ram", "dm-", "md"))]
    return (sum(row[0] for row in hardware.values()), sum(row[8] for row in hardware.values()),
            sum(int(d[5]) for d in whole) * 512, sum(int(d[9]) for d in whole) * 512)


def busy(path):
    """Writes to the disk, sends over the loopback, and sends packets without a receiver over the network if there is one."""
    with open(path, "wb") as file:
        file.write(os.urandom(8_000_000))
        os.fsync(file.fileno())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
        there.bind(("127.0.0.1", 0))
        for _ in range(2000):
            here.sendto(bytes(60_000), there.getsockname())
            try:
                here.sendto(bytes(1000), ("192.0.2.1", 9))
            except OSError:
                pass
    return os.path.getsize(path)


def test_hosts_of_two_collectors(new_cluster, monkeypatch, disk):
    """At least what was counted while the task ran, at most the difference from well before the block until well after it. The user's
    agents of one collector do not keep those of another one from reporting."""
    several = [new_cluster("one"), new_cluster("two")]
    for procs in several:
        procs.start_collector()
        procs.start_scheduler()
        procs.start_worker()
    monkeypatch.setenv("CREMA_PROGRAM", str(several[0].build / "crema"))
    for procs in several:
        with Client(procs.address) as client:
            client.wait_for_workers(1)
            earliest = counters()
            time.sleep(3)  # longer than two sample intervals
            with crema.measure(client, dir=procs.journal) as m:
                before = counters()
                assert client.submit(busy, str(disk / "written"), pure=False).result() == 8_000_000
                after = counters()
            time.sleep(3)
            latest = counters()
            found = m.get_metrics()
        for i, name in enumerate(METRICS):
            assert found[name] is not None, f"{name} of {procs.directory.name}"
            assert after[i] - before[i] <= found[name] <= latest[i] - earliest[i], name
        assert found["host_disk_write_peak_mbs"] * 1e6 * 10 > after[3] - before[3], "the task took a few seconds"
        (host,) = found["host_disk_io"]
        moved = sum(point["write_bytes_per_second"] * point["seconds"] for point in host["points"])
        assert moved == pytest.approx(found["host_disk_write_bytes"], rel=1e-6)
        assert "disks of the hosts" in procs.report().stdout
        procs.report("--csv", procs.directory / "csv")
        assert "net_read_bytes" in (procs.directory / "csv" / "samples.csv").read_text().splitlines()[0]
