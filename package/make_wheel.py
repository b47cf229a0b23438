# SPDX-License-Identifier: BSD-3-Clause
"""Makes the wheel: python/crema with the programs in crema/bin, and the command `crema`, which runs them.

The same programs always give the same bytes: times are SOURCE_DATE_EPOCH (the commit's), names are sorted, and modes do
not depend on the umask. auditwheel determines which Linux the programs run on; any other than requested is an error."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("crema", "crema-agent", "libcrema.so")
# Files for the environment's share/, from the build folder: man and the shells search there.
SHARED = {"man/man1": "man/*.1", "bash-completion/completions": "completion/crema", "zsh/site-functions": "completion/_crema",
          "fish/vendor_completions.d": "completion/crema.fish"}


def epoch():
    """SOURCE_DATE_EPOCH, else the time of the commit, else the earliest one that a zip file can have."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return os.environ["SOURCE_DATE_EPOCH"]
    done = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True, text=True)
    return done.stdout.strip() or "315532800"


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**os.environ, "SOURCE_DATE_EPOCH": epoch()})
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def shared(folder, build):
    """Copies man pages and completion; returns the lines of pyproject.toml that install them."""
    lines = ["", "[tool.setuptools.data-files]"]
    for place, pattern in SHARED.items():
        files = sorted(build.glob(pattern))
        for file in files:
            (folder / "share" / place).mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder / "share" / place)
        if not files:
            sys.exit(f"no '{pattern}' in '{build}': run make first")
        lines.append(f'"share/{place}" = {json.dumps([f"share/{place}/{file.name}" for file in files])}')
    return "\n".join(lines) + "\n"


def stage(folder, programs, build=ROOT / "build"):
    """Makes a source tree for setuptools."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "python", folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    text = (folder / "pyproject.toml").read_text() + (ROOT / "package" / "wheel.toml").read_text() + shared(folder, build)
    (folder / "pyproject.toml").write_text(text)
    shutil.copy(ROOT / "LICENSE", folder)
    bin_dir = folder / "crema" / "bin"
    bin_dir.mkdir()
    for name in PROGRAMS:
        shutil.copy(programs / name, bin_dir / name)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path.parent == bin_dir else 0o644)


def pack(folder, out, tag):
    """Makes the wheel of a staged tree in the folder `out`."""
    python, before = [sys.executable, "-m"], os.umask(0o022)
    try:
        run(*python, "pip", "wheel", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-w", out, folder)
        (plain,) = out.glob("*.whl")
        run(*python, "wheel", "tags", "--remove", "--platform-tag", tag, plain)
    finally:
        os.umask(before)
    (wheel,) = out.glob("*.whl")
    return wheel


def naming_this_folder(wheel):
    with zipfile.ZipFile(wheel) as file:
        return [name for name in file.namelist() if os.fsencode(ROOT) in file.read(name)]


def check(wheel, tag):
    """Checks with auditwheel which Linux its programs run on, and that they contain all libraries; and that they do not contain this folder's name."""
    seen = json.loads(run(sys.executable, "-m", "auditwheel", "show", "--json", wheel))
    newer = {name: max(versions) for name, versions in seen["versioned_symbols"].items()}
    if seen["overall_tag"] != tag or seen["external_libs"]:
        sys.exit(f"{wheel.name}: its programs run on {seen['overall_tag']} only, not on {tag}: they need "
                 f"{newer or ''} and {seen['external_libs'] or 'nothing else'}")
    if named := naming_this_folder(wheel):
        sys.exit(f"{wheel.name}: {', '.join(named)} contain '{ROOT}': made elsewhere, they would not be the same bytes")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=Path, required=True, help="folder with the three programs")
    parser.add_argument("--shared", type=Path, default=ROOT / "build", help="folder with man pages and completion")
    parser.add_argument("--arch", required=True)
    parser.add_argument("--glibc", required=True, help="the oldest it has to run on")
    parser.add_argument("--out", type=Path, required=True)
    o = parser.parse_args()
    tag = f"manylinux_{o.glibc.replace('.', '_')}_{o.arch}"
    with tempfile.TemporaryDirectory(dir=o.out) as work:
        folder, made = Path(work, "source"), Path(work, "wheel")
        stage(folder, o.programs, o.shared)
        wheel = pack(folder, made, f"{tag}.manylinux2014_{o.arch}")
        check(wheel, tag)
        print(shutil.copy(wheel, o.out))


if __name__ == "__main__":
    main()
