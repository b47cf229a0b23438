# SPDX-License-Identifier: BSD-3-Clause
"""The wheel: python/crema with the programs in crema/bin, and the command `crema` that runs them.

auditwheel says which Linux its programs run on; older than what is asked for is an error."""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("crema", "crema-agent", "libcrema.so")


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def stage(folder, programs):
    """A source tree for setuptools."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "python", folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    text = (folder / "pyproject.toml").read_text() + (ROOT / "package" / "wheel.toml").read_text()
    (folder / "pyproject.toml").write_text(text)
    shutil.copy(ROOT / "LICENSE", folder)
    bin_dir = folder / "crema" / "bin"
    bin_dir.mkdir()
    for name in PROGRAMS:
        shutil.copy(programs / name, bin_dir / name)
        (bin_dir / name).chmod(0o755)


def check(wheel, tag):
    """auditwheel's word: which Linux its programs run on, and that they bring all their libraries."""
    seen = json.loads(run(sys.executable, "-m", "auditwheel", "show", "--json", wheel))
    newer = {name: max(versions) for name, versions in seen["versioned_symbols"].items()}
    if seen["overall_tag"] != tag or seen["external_libs"]:
        sys.exit(f"{wheel.name}: its programs run on {seen['overall_tag']} only, not on {tag}: they need "
                 f"{newer or ''} and {seen['external_libs'] or 'nothing else'}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=Path, required=True, help="folder with the three programs")
    parser.add_argument("--arch", required=True)
    parser.add_argument("--glibc", required=True, help="the oldest it has to run on")
    parser.add_argument("--out", type=Path, required=True)
    o = parser.parse_args()
    python = [sys.executable, "-m"]
    tag = f"manylinux_{o.glibc.replace('.', '_')}_{o.arch}"
    with tempfile.TemporaryDirectory(dir=o.out) as work:
        folder, made = Path(work, "source"), Path(work, "wheel")
        stage(folder, o.programs)
        run(*python, "pip", "wheel", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-w", made,
            folder)
        (plain,) = made.glob("*.whl")
        run(*python, "wheel", "tags", "--remove", "--platform-tag", f"{tag}.manylinux2014_{o.arch}", plain)
        (wheel,) = made.glob("*.whl")
        check(wheel, tag)
        print(shutil.copy(wheel, o.out))


if __name__ == "__main__":
    main()
