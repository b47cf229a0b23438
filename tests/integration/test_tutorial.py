# SPDX-License-Identifier: BSD-3-Clause
"""docs/tutorial.md: each step by the commands that it prints, without a collector, and the document's statements about the step
that do not depend on the machine."""

import json
import os
import re
import subprocess
import sys

import cluster
import pytest

TEXT = (cluster.ROOT / "docs" / "tutorial.md").read_text()
# step: chunks, codec, threads of a worker
STEPS = {0: (40, "lzma", 4), 1: (40, "lzma", 1), 2: (40, "lzma", 1), 3: (4, "lzma", 1), 4: (4, "zstd", 1)}
LONG = {0: "further", 1: "matrix", 2: "matrix", 3: "further"}  # their marks


def env_of(place):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CREMA", "LD_PRELOAD"))}
    return {**clean, "PATH": f"{cluster.BUILD}:{os.path.dirname(sys.executable)}:{clean['PATH']}", "XDG_STATE_HOME": str(place / "state"),
            "XDG_CONFIG_HOME": str(place / "config")}


@pytest.mark.parametrize("step", [pytest.param(n, marks=[getattr(pytest.mark, LONG[n])] if n in LONG else []) for n in STEPS])
def test_step(step, tmp_path):
    chunks, codec, threads = STEPS[step]
    command, report = re.search(rf"^    (crema run .* --step {step})\n    (crema report)$", TEXT, re.M).groups()
    done = subprocess.run(["bash", "-c", f"{command} && sleep 2"], cwd=cluster.ROOT, env=env_of(tmp_path), capture_output=True, text=True, timeout=380)
    assert done.returncode == 0, done.stderr[-2000:]
    events, mass = re.fullmatch(r"(\d+) events, mean mass ([\d.]+) GeV", done.stdout.splitlines()[-1]).groups()
    assert (int(events), float(mass)) == ((48504, 115.22) if codec == "lzma" else (48455, 116.06))
    found = json.loads(subprocess.run([*report.split(), "--json", "-"], env=env_of(tmp_path), capture_output=True, check=True).stdout)
    assert len(found["chunks"]) == chunks and found["metrics"]["total_events"] == 200_000
    assert {c["codec"] for c in found["codecs"] if c["out_bytes"] > 10**6} == {codec}
    said = re.search(rf"^\| {step} \|.*\| ([\d.]+) MB \|$", TEXT, re.M)[1]
    (decompressed,) = [c["out_bytes"] for c in found["codecs"] if c["codec"] == codec]
    assert decompressed == pytest.approx(float(said) * 1e6, abs=0.05e6)
    findings = {f["id"] for f in found["findings"] + found["findings_left_out"]}  # of a busy machine, others are shown
    assert ("gil_wait" in findings) == (threads == 4)
    assert ("baskets_reread" in findings) == (chunks == 40)
