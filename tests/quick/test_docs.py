"""The documents: links that lead somewhere, commands and options that exist, pictures that are small, lists with as many entries as
the text states."""

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "crema"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
WRITTEN = [file for file in DOCUMENTS if file.name not in ("options.md", "accuracy.md")]


def anchors(text):
    """GitHub's anchors of all headings."""
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda f: f.name)
def test_links(file):
    for target in re.findall(r"\]\(([^)\s]+)\)", file.read_text()):
        if not target.startswith("http"):
            path, _, anchor = target.partition("#")
            found = (file.parent / path).resolve() if path else file
            assert found.exists(), target
            assert not anchor or anchor in anchors(found.read_text()), target


def test_every_document_is_in_the_index():
    text = (ROOT / "docs" / "index.md").read_text()
    assert [f.name for f in DOCUMENTS if f.parent.name == "docs" and f.name != "index.md" and f"({f.name})" not in text] == []


def help_of(command):
    return subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True, check=True).stdout


def commands(text):
    """(command, options) of each `crema COMMAND ...` in blocks and in code."""
    code = [m for m in re.findall(r"`([^`\n]+)`", text)] + re.findall(r"^    (.*)$", text, re.M)
    for line in code:
        for found in re.finditer(r"(?:^|[\s;&]|bin/)crema (?!import)([a-z]+)((?: [^`#|;&]*)?)", line.split("#")[0]):
            yield found[1], re.findall(r"(?<!\S)(--[a-z][a-z-]+)", found[2].split(" -- ")[0])


@pytest.mark.parametrize("file", WRITTEN, ids=lambda f: f.name)
def test_commands(file):
    """Every command exists, and every option is in the command's help."""
    known = {}
    names = set(re.findall(r"^  ([a-z]+)  ", subprocess.run([PROGRAM, "--help"], capture_output=True, text=True).stdout, re.M))
    for command, options in commands(file.read_text()):
        assert command in names, command
        known.setdefault(command, help_of(command))
        for option in options:
            assert re.search(rf"{option}\b", known[command]), f"crema {command} {option}"


def test_readme_is_short():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < 120
    assert "do not `pip install crema`" in text.lower()


def test_glossary():
    rows = re.findall(r"^\| (?!term|---)(.*?) \| ", (ROOT / "docs" / "glossary.md").read_text(), re.M)
    assert len(rows) >= 30 and rows == sorted(rows, key=str.lower)


def test_python_versions():
    """README names the first and the last version of the table."""
    minors = re.findall(r"^PYTHON\((\d+),", (ROOT / "contract" / "pythons.def").read_text(), re.M)
    assert len(minors) >= 6 and f"CPython 3.{minors[0]} to 3.{minors[-1]}]" in (ROOT / "README.md").read_text()


def test_pictures():
    pictures = list((ROOT / "docs" / "img").glob("*.png"))
    assert len(pictures) >= 8
    for picture in pictures:
        assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size < 150_000, picture
        assert any(f"img/{picture.name}" in file.read_text() for file in DOCUMENTS), picture


def test_notebook_has_no_outputs():
    cells = json.loads((ROOT / "docs" / "notebook.ipynb").read_text())["cells"]
    assert all(not cell.get("outputs") for cell in cells)


def test_summary_of_accuracy():
    """The table and the line of counts agree with the rows below."""
    head, *parts = re.split(r"^## ", (ROOT / "docs" / "accuracy.md").read_text(), flags=re.M)
    kinds = ("exact", "within", "not measurable", "not tried")
    counts, summary = {}, {}
    for part in parts:
        title = part.split("\n", 1)[0]
        rows = [line for line in part.split("\n") if line.startswith("| ")][1:]
        if title == "Summary":
            summary = {row.split("[")[1].split("]")[0]: [int(n) for n in row.split("|")[2:-1]] for row in rows}
        elif title != "WRONG":
            verdicts = [row.rsplit("|", 2)[1].strip() for row in rows]
            own = [sum(v.startswith(kind) for v in verdicts) for kind in kinds]
            counts[title] = [len(rows), *own, len(rows) - sum(own)]
    assert summary == counts
    said = re.search(r"^(\d+) cells: (\d+) exact, (\d+) within, (\d+) not measurable, (\d+) not tried, (\d+) wrong", head, re.M)
    assert [int(n) for n in said.groups()] == [sum(column) for column in zip(*counts.values())]


@pytest.mark.parametrize("sentence", ["The page is made anew.", "It is told apart by name.", "what of it was read", "One line says so.", "nobody's bytes",
                                      "the sums beside it", "as Dask says", "kept for ever", "It has a look at the file.", "This is no number.",
                                      "It waits at each look.", "They hold so many bytes.", "idle for so long", "one stretch of bytes", "It gives back a number.",
                                      "heard of in the last 10 s", "no sign of life", "what it answers is wrong"])
def test_wording_is_checked(tmp_path, sentence):
    """check-tree rejects a planted sentence, but no correct one."""
    (tmp_path / "good.md").write_text("The page is next to the agent. Dask reports 4 tasks, besides the merges; it looks at nothing else.\n")
    (tmp_path / "bad.md").write_text(sentence + "\n")
    check = [ROOT / "scripts" / "check-tree", "--words"]
    assert subprocess.run([*check, tmp_path / "good.md"]).returncode == 0
    done = subprocess.run([*check, tmp_path / "bad.md"], capture_output=True, text=True)
    assert done.returncode == 1 and sentence in done.stderr
