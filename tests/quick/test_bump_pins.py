"""scripts/bump-pins with packages of our own in a folder in place of an index."""

import os
import subprocess
import sys
import zipfile

from test_worker import HERE

BUMP = HERE.parents[1] / "scripts" / "bump-pins"


def wheel(folder, name, version, needs=(), python="3.8"):
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as z:
        z.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Python: >={python}\n" + "".join(f"Requires-Dist: {n}\n" for n in needs))
        z.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(f"{info}/RECORD", "")


def bump(folder, *args):
    env = {**os.environ, "UV_FIND_LINKS": str(folder / "wheels"), "UV_OFFLINE": "1", "UV_NO_CACHE": "1"}
    return subprocess.run([sys.executable, BUMP, *args, folder], env=env, capture_output=True, text=True)


def test_newest_versions_and_what_changed(tmp_path):
    (tmp_path / "wheels").mkdir()
    for made in (("alpha", "1.0", ["be_ta"]), ("alpha", "2.0", ["be_ta", "new"]), ("be_ta", "1.5"), ("new", "0.1"), ("old", "3.0")):
        wheel(tmp_path / "wheels", *made)
    (tmp_path / "requirements.in").write_text("alpha\n")
    pinned = "# A head.\nalpha==1.0\nBe_ta==1.5\nold==3.0\n"
    (tmp_path / "requirements.txt").write_text(pinned)
    said = "alpha: 1.0 -> 2.0\nnew: absent -> 0.1\nold: 3.0 -> absent\n"
    dry = bump(tmp_path, "--dry-run")
    assert (dry.returncode, dry.stdout) == (0, said), dry.stderr
    assert (tmp_path / "requirements.txt").read_text() == pinned
    assert bump(tmp_path).stdout == said
    assert (tmp_path / "requirements.txt").read_text() == "# A head.\nalpha==2.0\nBe_ta==1.5\nnew==0.1\n"
    assert bump(tmp_path).stdout == ""
    (tmp_path / "requirements.in").write_text("alpha\nnowhere\n")
    failed = bump(tmp_path)
    assert failed.returncode and "nowhere" in failed.stderr and failed.stderr.startswith("bump-pins: ")
    assert "new==0.1" in (tmp_path / "requirements.txt").read_text()


def test_the_newest_python_has_its_own_versions(tmp_path):
    """A version without a wheel is left out there, and one that only this Python can use is not. If one file has no solution, none is written."""
    (tmp_path / "wheels").mkdir()
    for made in (("alpha", "1.0"), ("alpha", "2.0"), ("alpha", "3.0", ["new"], "3.15"), ("be_ta", "1.5"), ("new", "0.1")):
        wheel(tmp_path / "wheels", *made)
    (tmp_path / "wheels" / "be_ta-9.0.tar.gz").write_bytes(b"not a wheel")
    (tmp_path / "requirements.in").write_text("alpha\n")
    (tmp_path / "requirements.txt").write_text("alpha==1.0\n")
    (tmp_path / "tests").mkdir()
    pythons = tmp_path / "tests" / "pythons-requirements.txt"
    pinned = "# Wheels exist for 3.15.\nAlpha==1.0\nBe_ta==1.5\n"
    pythons.write_text(pinned + "nowhere==1\n")
    failed = bump(tmp_path)
    assert failed.returncode and "nowhere" in failed.stderr and (tmp_path / "requirements.txt").read_text() == "alpha==1.0\n"
    pythons.write_text(pinned)
    done = bump(tmp_path)
    assert done.stdout == "alpha: 1.0 -> 2.0\nfor Python 3.15: alpha: 1.0 -> 3.0\nfor Python 3.15: new: absent -> 0.1\n", done.stderr
    assert pythons.read_text() == "# Wheels exist for 3.15.\nalpha==3.0\nBe_ta==1.5\nnew==0.1\n"
    assert bump(tmp_path).stdout == ""
    (tmp_path / "tests" / "versions").mkdir()
    lists = {name: tmp_path / "tests" / "versions" / name for name in ("alpha-newest-3.14.txt", "alpha-1.txt")}
    for path in lists.values():
        path.write_text("# Python 3.14: a list.\nalpha==1.0\n")
    assert bump(tmp_path).stdout == "for Python 3.14: alpha: 1.0 -> 2.0\n"
    assert [path.read_text().splitlines()[-1] for path in lists.values()] == ["alpha==2.0", "alpha==1.0"]
