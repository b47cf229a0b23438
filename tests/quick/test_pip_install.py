"""scripts/pip_install.py: what uv is told of pip's settings, and that pip installs where uv cannot."""

import subprocess
import sys
from pathlib import Path

import pip
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import pip_install  # noqa: E402


def test_settings():
    listed = ":env:.find-links='/a /b'\nglobal.index-url='https://one/simple'\nglobal.extra-index-url='https://two\\nhttps://three'\nglobal.timeout='60'\nuser.cert='/x.pem'\n"
    assert pip_install.settings(listed, {"PATH": "/bin", "UV_INDEX": "https://mine"}) == {
        "UV_FIND_LINKS": "/a,/b", "UV_DEFAULT_INDEX": "https://one/simple", "UV_INDEX": "https://mine", "SSL_CERT_FILE": "/x.pem",
        "UV_LINK_MODE": "copy", "UV_HTTP_TIMEOUT": "60", "PATH": "/bin"}


@pytest.fixture
def package(tmp_path):
    """A wheel without dependencies, made by hand."""
    import zipfile

    wheel = tmp_path / "crematest-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("crematest.py", "value = 42\n")
        file.writestr("crematest-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: crematest\nVersion: 1.0\n")
        file.writestr("crematest-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("crematest-1.0.dist-info/RECORD", "crematest.py,,\ncrematest-1.0.dist-info/METADATA,,\ncrematest-1.0.dist-info/WHEEL,,\n"
                                                        "crematest-1.0.dist-info/RECORD,,\n")
    return str(wheel)


def installed(place):
    return subprocess.run([place / "bin/python", "-c", "import crematest; print(crematest.value)"], capture_output=True, text=True).stdout == "42\n"


def new_venv(place, with_pip):
    """Its pip is this Python's: installing one takes four seconds of CPU."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    if with_pip:
        own, = place.glob("lib/python*/site-packages")
        (own / "pip").symlink_to(Path(pip.__file__).parent)
    return place


@pytest.mark.parametrize("fails", [False, True])
def test_either_installs(tmp_path, package, monkeypatch, capfd, fails):
    place = new_venv(tmp_path / "venv", with_pip=fails)
    if fails:
        broken = tmp_path / "bin" / "uv"
        broken.parent.mkdir()
        broken.write_text("#!/bin/sh\necho no network >&2\nexit 2\n")
        broken.chmod(0o755)
        (broken.parent / "python").symlink_to(sys.executable)
        real = subprocess.run
        monkeypatch.setattr(subprocess, "run", lambda words, **k: real([str(broken) if str(words[0]).endswith("/uv") else words[0], *words[1:]], **k))
    pip_install.install(place / "bin/python", ["--no-deps", package])
    assert installed(place)
    assert ("uv failed, pip installs: no network" in capfd.readouterr().err) == fails


def test_neither(tmp_path):
    place = new_venv(tmp_path / "venv", with_pip=True)
    with pytest.raises(RuntimeError, match="nothing-here"):
        pip_install.install(place / "bin/python", ["--no-deps", str(tmp_path / "nothing-here.whl")])
