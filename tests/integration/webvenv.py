"""An environment with HTTP clients that not all tests need, and whose pins do not fit theirs: what is
missing of the .venv, over it."""

import subprocess
import sys
import sysconfig

import jobs

PINS = jobs.ROOT / "tests" / "web-requirements.txt"


def environment():
    """Its bin folder; made once, and again when the pins change."""
    place = jobs.ROOT / "build" / "venvs" / "web"
    python, stamp = place / "bin" / "python", place / "ready"
    if not stamp.exists() or stamp.read_text() != PINS.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True, capture_output=True)
        base = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], check=True,
                              capture_output=True, text=True).stdout.strip()
        with open(f"{base}/base.pth", "w") as file:
            file.write(sysconfig.get_path("purelib") + "\n")
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "-r", PINS],
                       check=True, capture_output=True)
        stamp.write_text(PINS.read_text())
    return place / "bin"
