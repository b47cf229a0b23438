# SPDX-License-Identifier: BSD-3-Clause
"""The lines "bytes:" of NFS mounts in files that others recorded on their machines (NFS 3 to 4.2, TCP and RDMA; two are of 4.18 kernels, in which
nothing was read): those with which Debian's Performance Co-Pilot tests itself. They have no mountinfo: mounts of one source are one
file system here."""

import re
import subprocess

import cluster
import packages
import pytest

NFS = ("nfs", "nfs4")


def mounts(text):
    """(source, point, type, the numbers of "bytes:" or None) of each mount."""
    for block in re.split(r"^(?=device )", text, flags=re.MULTILINE):
        if found := re.match(r"device (.+) mounted on (\S+) with fstype (\S+)", block):
            numbers = re.search(r"^\s*bytes:\s+([\d ]+)", block, re.MULTILINE)
            yield *found.groups(), [int(n) for n in numbers[1].split()] if numbers else None


@pytest.mark.further
def test_nfs(tmp_path):
    place = packages.unpacked("pcp-testsuite", "pcp-testsuite")
    due = {}
    for number, file in enumerate(sorted(place.glob("var/lib/pcp/testsuite/nfsclient/*.qa"))):
        proc, systems, known = tmp_path / str(number) / "self", {}, {}
        proc.mkdir(parents=True)
        text, lines = file.read_text(), []
        for source, point, kind, counts in mounts(text):
            system = (source, kind) if kind in NFS else point
            device = systems.setdefault(system, len(systems) + 40)
            lines.append(f"{len(lines) + 20} 1 0:{device} / {point} rw - {kind} {source} rw\n")
            if kind in NFS:
                known.setdefault(system, counts)
        (proc / "mountstats").write_text(text)
        (proc / "mountinfo").write_text("".join(lines))
        due[str(number)] = [0, len(known), sum(n[0] + n[2] for n in known.values()), sum(n[4] for n in known.values())]
    done = subprocess.run([cluster.BUILD / "tests/unit/test_mountstats"], env={"CREMA_RECORDED_MOUNTS": str(tmp_path)},
                          capture_output=True, text=True, check=True)
    found = {name: [int(n) for n in numbers.split()] for name, numbers in re.findall(r"^recorded (\S+) (.*)$", done.stdout + done.stderr, re.MULTILINE)}
    assert found == due
    assert sum(n[1] > 0 for n in due.values()) >= 6 and sum(n[3] > 0 for n in due.values()) >= 4  # docs/limits.md
    assert sum(n[3] for n in due.values()) > 10**12
