# SPDX-License-Identifier: BSD-3-Clause
"""`crema report` with less and less memory: the same report, or a line that tells why there is none."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KIB = 1024


@pytest.mark.parametrize("options", [("--json", "-"), ("--full",)], ids=["json", "full"])
def test_a_report_or_a_reason(tmp_path, options):
    (tmp_path / "journal").mkdir()
    shutil.copy(ROOT / "tests" / "golden" / "journal-1.crema", tmp_path / "journal")

    def report(*before):
        return subprocess.run([*before, ROOT / "build" / "crema", "report", "--dir", tmp_path, *options], capture_output=True, text=True)

    whole, refused = report(), 0
    assert whole.returncode == 0
    for size in range(2000, 8000, 50):
        done = report("prlimit", f"--data={size * KIB}")
        if done.returncode == 0:
            assert (done.stdout, done.stderr) == (whole.stdout, whole.stderr), size
        elif done.returncode != 127:  # the loader had not even enough for the libraries
            assert re.fullmatch(r"crema: .*cannot allocate memory\n", done.stderr) and done.returncode == 1 and not done.stdout, (size, done)
            refused += 1
    assert refused
