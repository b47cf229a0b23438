"""Tasks in many threads at once (many_threads_job.py), with the interpreter lock and without: every number of every task is exact."""

import json

import pytest
import spool
from test_lines import HERE, WITHOUT_GIL, job, python_of, report

THREADS, TASKS = 8, 250


@pytest.mark.parametrize("version", ["own", *WITHOUT_GIL])
def test_every_number_is_exact(tmp_path, version):
    job(tmp_path, python_of(version), program=HERE / "many_threads_job.py", arguments=[str(TASKS), tmp_path / "data"])
    found, _ = spool.wait(tmp_path / "out")
    ended = {task["key"]: task for task in found["end"]}
    keys = {f"kind{i % 3}-{thread}-{i}": i for thread in range(THREADS) for i in range(TASKS)}
    assert len(found["end"]) == len(ended) and set(ended) == set(keys)
    for key, i in keys.items():
        task = ended[key]
        expected = {"read_bytes": 100 + i % 7 + 50 + 10, "read_calls": 3, "decompress_calls": 1, "decompress_out_bytes": 5000}
        assert {name: task[name] for name in expected} == expected, (key, task["status"])
    made = json.loads(report(tmp_path, "--json", "-"))
    sections = {}
    for row in made["sections"]:
        sections[row["section"]] = sections.get(row["section"], 0) + row["count"]
    assert sections == {"outer": THREADS * TASKS, **{f"outer/inner {n}": THREADS * TASKS // 5 for n in range(5)}}
    values = [row["value"] for row in made["custom_metrics"] if row["name"] == "number"]
    assert sum(value["sum"] for value in values) == THREADS * sum(range(TASKS))
