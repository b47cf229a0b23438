# SPDX-License-Identifier: BSD-3-Clause
"""docs/notebook.ipynb run by Jupyter's client, and the script of docs/python.md, in a user's setup: crema.preload(), no
collector, and nothing from the tests' environment. Compared with coffea's own output and with the files."""

import base64
import json
import os
import re
import subprocess
import sys

import cluster
import pytest
import venvs

DOCS = cluster.ROOT / "docs"
RUN = """
import sys, nbformat, nbclient
notebook = nbformat.read(sys.argv[1], 4)
notebook.cells.insert(-1, nbformat.v4.new_code_cell("print(m.t_end - m.t_start, m.start_time)  # the block"))
try:
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": sys.argv[2]}}).execute()
finally:
    nbformat.write(notebook, sys.argv[3])
"""


@pytest.fixture
def env(homes, tmp_path):
    """A user's environment, with the package and the program installed; its spool is the test's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CREMA", "LD_PRELOAD", "XDG"))}
    return {**kept, "PATH": f"{cluster.BUILD}:{kept['PATH']}", "PYTHONPATH": str(cluster.ROOT / "python"), "CREMA_PROGRAM": str(cluster.BUILD / "crema"),
            "XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config"), "MPLCONFIGDIR": str(tmp_path / "mpl"),
            "IPYTHONDIR": str(tmp_path / "ipython"), "JUPYTER_RUNTIME_DIR": str(tmp_path / "jupyter")}


def last_run(env, *options):
    done = subprocess.run([cluster.BUILD / "crema", "report", "--json", "-", *options], env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.further
def test_notebook(env, tmp_path):
    place = venvs.beside("notebook", cluster.ROOT / "tests" / "notebook.txt")
    env["PATH"] = f"{place}:{env['PATH']}"
    env["JUPYTER_PATH"] = str(place.parent / "share" / "jupyter")
    done = subprocess.run([place / "python", "-c", RUN, DOCS / "notebook.ipynb", DOCS, tmp_path / "done.ipynb"], env=env,
                          capture_output=True, text=True, timeout=380)
    assert done.returncode == 0, done.stderr[-3000:]
    cells = [c for c in json.loads((tmp_path / "done.ipynb").read_text())["cells"] if c["cell_type"] == "code"]
    outputs = {"".join(c["source"]).splitlines()[-1]: [o.get("data", {"text": "".join(o.get("text", ""))}) for o in c["outputs"]] for c in cells}
    wall, start = "".join(o["text"] for o in outputs["print(m.t_end - m.t_start, m.start_time)  # the block"]).split()
    found = last_run(env, "--client-wall", wall, "--client-start", start)

    (said,) = outputs["output"]
    events, jets = map(int, re.findall(r"\d+", "".join(said["text/plain"])))
    import uproot

    with uproot.open(next((cluster.ROOT / "data").glob("nano_zstd*.root"))) as file:
        assert events == file["Events"].num_entries == found["metrics"]["total_events"] and jets > 0
    (shown,) = outputs["m"]
    card = "".join(shown["text/html"])
    assert found["run"] in card and "<iframe" in card and found["run"] in "".join(shown["text/plain"])
    (listed,) = outputs["m.findings"]
    assert f", {len(re.findall('^[A-Z]+: ', ''.join(listed['text/plain']), re.M))} finding" in "".join(shown["text/plain"]), shown["text/plain"]
    # The report of the same block says the same: what happened after it changes nothing. Notes can give way to those about
    # the client's time, which the notebook recorded.
    missing = [f["sentence"] for f in found["findings"] if f["severity"] != "note" and f["sentence"] not in "".join(listed["text/plain"])]
    assert not missing and found["findings"], listed["text/plain"]
    (picture,) = [o["image/png"] for o in outputs["m.plot();"] if "image/png" in o]  # matplotlib may print that it builds its font cache
    assert base64.b64decode(picture).startswith(b"\x89PNG") and len(picture) > 20_000
    assert len(found["chunks"]) == -(-events // 50_000) and found["metrics"]["total_bytes_read_coffea"] > 0
    assert {s["section"] for s in found["sections"]} == {"selection"}
    assert [o["text"] for c in outputs.values() for o in c if "Warning: crema" in o.get("text", "")] == []


def blocks(file):
    """The indented blocks of a document."""
    found = re.findall(r"(?:^(?:    .*)?\n)+", (DOCS / file).read_text(), re.M)
    return [re.sub(r"^    ", "", block, flags=re.M).strip("\n") + "\n" for block in found if block.strip()]


def test_script_of_python_md(env, tmp_path):
    (script,) = [b for b in blocks("python.md") if "crema.preload()" in b and "__main__" in b]
    file = tmp_path / "analysis.py"
    file.write_text(script)
    files = sorted(map(str, (cluster.ROOT / "data").glob("nano_z*.root")))
    done = subprocess.run([sys.executable, file, *files], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "Warning: crema" not in done.stderr, done.stderr[-2000:]
    found = last_run(env)
    assert f"{found['metrics']['total_events']} events" in done.stdout and found["run"] in done.stdout
    assert found["metrics"]["total_events"] == 200_000 * len(files)
    assert (tmp_path / "charts.png").stat().st_size > 20_000
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
