"""The man pages match --help, and every program that shows man pages can read them."""

import re
import subprocess

import jobs
import pytest

BUILD = jobs.ROOT / "build"
PAGES = sorted((BUILD / "man").glob("*.1"))


def shown(page):
    done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-P-cbou", page], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def commands():
    usage = subprocess.run([BUILD / "crema", "--help"], capture_output=True, text=True).stdout
    return re.findall(r"^  (\S+) ", usage, re.M)


def test_each_command_has_a_page():
    assert {p.stem for p in PAGES} == {"crema"} | {f"crema-{c}" for c in commands()}
    main = shown(BUILD / "man" / "crema.1")
    assert all(f"crema-{c}(1)" in main for c in commands()) and "CREMA_COLLECTOR" in main


@pytest.mark.parametrize("page", [p.stem for p in PAGES if p.stem != "crema"])
def test_page_has_all_options(page):
    said = subprocess.run([BUILD / "crema", page.removeprefix("crema-"), "--help"], capture_output=True, text=True).stdout
    text = shown(BUILD / "man" / f"{page}.1")
    flags = set(re.findall(r"^ +(--[a-z-]+)", said, re.M))
    assert flags and flags <= set(re.findall(r"^ +(--[a-z-]+)", text, re.M))
    assert "DESCRIPTION" in text and len(text) > 500
