# SPDX-License-Identifier: BSD-3-Clause
"""Lines of a main script and of a notebook, whose code cloudpickle 3.1.3 and newer send to the workers without the file's name."""

import json
import os
import subprocess

import cluster
import pytest
import venvs

SCRIPT = '''
import sys
from distributed import Client, LocalCluster, span

class Processor:
    def process(self, n):
        total = 0
        for i in range(n):
            total += i * i
        return total

if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client, span("all"):
        client.gather(client.map(lambda n: Processor().process(n), [6_000_000 + i for i in range(6)]))
        client.submit(lambda path: len(open(path, "rb").read()), sys.argv[1]).result()
'''
CELLS = ["import json, crema; from distributed import Client, LocalCluster; crema.preload()",
         "cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None); client = Client(cluster)",
         "def kept():\\n    pass\\ndef heavy(n):\\n    for i in range(n):\\n        pass",  # changed and run again
         "def heavy(n):\\n    total = 0\\n    for i in range(n):\\n        total += i * i\\n    return total",
         "with crema.measure(client) as m:\\n    client.gather(client.map(heavy, [6_000_000 + i for i in range(6)]))",
         "print(json.dumps([[line[name] for name in ('file', 'line', 'function')] for line in m.run.json['stacks']['lines']]))\\nclient.close(); cluster.close()"]
RUN = """
import sys, nbformat, nbclient
cells = [nbformat.v4.new_code_cell(text) for text in %r]
done = nbclient.NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=200, kernel_name="python3").execute()
print("".join(output.get("text", "") for output in done["cells"][-1]["outputs"]))
""" % [cell.replace("\\n", "\n") for cell in CELLS]


@pytest.fixture
def env(homes, tmp_path):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CREMA", "LD_PRELOAD", "XDG"))}
    place = venvs.beside("notebook", cluster.ROOT / "tests" / "notebook.txt")
    return {**kept, "PATH": f"{place}:{cluster.BUILD}:{kept['PATH']}", "PYTHONPATH": str(cluster.ROOT / "python"), "CREMA_DIR": str(tmp_path / "records"),
            "CREMA_PROGRAM": str(cluster.BUILD / "crema"), "XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "IPYTHONDIR": str(tmp_path / "ipython"), "JUPYTER_RUNTIME_DIR": str(tmp_path / "jupyter"), "JUPYTER_PATH": str(place.parent / "share" / "jupyter")}


def succeed(command, env, **options):
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_script(env, tmp_path):
    script = tmp_path / "analysis.py"
    script.write_text(SCRIPT)
    (tmp_path / "data").write_bytes(bytes(200_000))
    succeed([cluster.BUILD / "crema", "run", "--", "python", "analysis.py", tmp_path / "data"], env, cwd=tmp_path)
    found = json.loads(succeed([cluster.BUILD / "crema", "report", "--json", "-"], env))
    heavy = [line for line in found["stacks"]["lines"] if line["function"] == "Processor.process"]
    assert {line["file"] for line in heavy} == {str(script)} and {line["line"] for line in heavy} <= {8, 9}
    assert all(f"{script}:14 <lambda>" in line["stack"] for line in heavy) and "<dynamic-code>" not in json.dumps(found)
    (data,) = [file for file in found["files"] if file["path"] == str(tmp_path / "data")]
    assert [(opened["line"], opened["read_bytes"]) for opened in data["opened_by"]] == [(f"{script}:15 <lambda>", 200_000)]
    assert "            total += i * i" in succeed([cluster.BUILD / "crema", "report", "--show", "source"], env)


def test_notebook(env):
    lines = json.loads(succeed(["python", "-c", RUN], env).strip().splitlines()[-1])
    heavy = [(file, line) for file, line, function in lines if function == "heavy"]
    assert heavy and set(heavy) <= {("In[4]", 3), ("In[4]", 4)}, lines
    assert not any(file == "<dynamic-code>" for file, _, _ in lines)
