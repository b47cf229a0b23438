"""Run.to_parquet() and Run.to_arrow(): pyarrow, DuckDB and dask.dataframe read the same as SQLite and the JSON of the same runs contain."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys

import dask.dataframe
import duckdb
import pyarrow.parquet
import pytest
import test_reports  # sets the path to frames.py and tables.py
import test_sheets

sys.path.insert(0, str(test_reports.ROOT / "python"))
import crema
import crema.parquet

made = test_sheets.made
ROWS, MANY = 1000, 1500  # a row group, and two of them
MAKER = test_reports.ROOT / "build" / "tests" / "bench" / "make_journal"


class Written:
    def __init__(self, run, database, sheets, counts):
        self.run, self.database, self.sheets, self.counts = run, database, sheets, counts

    def rows(self, table):
        """As in SQLite: column -> values, in its order."""
        with contextlib.closing(sqlite3.connect(self.database)) as db:
            rows = db.execute(f'SELECT * FROM "{table}" ORDER BY rowid')
            names = [column[0] for column in rows.description]
            return names, rows.fetchall()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("data set")


@pytest.fixture(scope="module")
def runs(tmp_path_factory, made, folder):
    """Three runs in one data set: one with every kind of row, a large one, a small one."""
    where = tmp_path_factory.mktemp("journals")
    subprocess.run(["make", "-C", test_reports.ROOT, MAKER.relative_to(test_reports.ROOT)], check=True, capture_output=True)
    for tasks, start in ((MANY, 1_790_000_000), (300, 1_790_500_000)):
        subprocess.run([MAKER, where / str(tasks), str(tasks), "3", "1", str(start)], check=True)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crema.parquet, "ROWS", ROWS)
        patch.setenv("CREMA_PROGRAM", str(test_reports.ROOT / "build" / "crema"))
        for journal in (made.journal, where / str(MANY), where / "300"):
            run = crema.load(dir=journal)
            run._printed("--sqlite", where / f"{run.id}.sqlite")
            run._printed("--csv", where / f"{run.id}-csv")
            found.append(Written(run, where / f"{run.id}.sqlite", where / f"{run.id}-csv", run.to_parquet(folder)))
        found[1].run.to_parquet(folder)  # replaces its own files
    return found


@pytest.mark.parametrize("which", [0, 1])
def test_each_cell_is_that_of_sqlite(runs, folder, which):
    written = runs[which]
    with contextlib.closing(sqlite3.connect(written.database)) as db:
        told = {(table, name): (kind, unit) for table, name, kind, unit in db.execute("SELECT * FROM columns")}
    assert set(written.counts) == {table for table, _ in told}
    for table, count in written.counts.items():
        names, rows = written.rows(table)
        file = pyarrow.parquet.ParquetFile(folder / table / f"run={written.run.id}" / "part-0.parquet")
        assert file.schema_arrow.names == [name for name in names if name != "run"]
        assert count == len(rows) == file.metadata.num_rows
        read = file.read().to_pydict()
        for at, name in enumerate(names):
            if name == "run":
                assert {row[at] for row in rows} <= {written.run.id}
                continue
            assert read[name] == [row[at] for row in rows], (table, name)
            kind, unit = told[table, name]
            field = file.schema_arrow.field(name)
            assert str(field.type) == {"INTEGER": "int64", "TEXT": "string", "BOOLEAN": "bool"}.get(kind, "double")
            assert (field.metadata or {}).get(b"unit", b"").decode() == unit


@pytest.mark.parametrize("which", [0, 1])
def test_arrow_has_the_same(runs, folder, which):
    """Also without rows; the files of CSV are gone by then."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CREMA_PROGRAM", str(test_reports.ROOT / "build" / "crema"))
        tables = runs[which].run.to_arrow()
    assert list(tables) == list(runs[which].counts)
    for name, table in tables.items():
        file = pyarrow.parquet.ParquetFile(folder / name / f"run={runs[which].run.id}" / "part-0.parquet")
        assert table.schema.equals(file.schema_arrow, check_metadata=True) and table.equals(file.read()), name
        table.validate(full=True)
    assert any(table.num_rows for table in tables.values()) and (not which or not all(table.num_rows for table in tables.values()))


def test_the_unknown_is_null(runs, folder):
    """As many as in the JSON, and 0 is a number."""
    for written in runs:
        tasks = written.run.json["tasks"]
        table = pyarrow.parquet.read_table(folder / "tasks" / f"run={written.run.id}")
        for name in ("storage_read_bytes", "gil_wait_seconds", "read_bytes"):
            assert table[name].null_count == sum(task[name] is None for task in tasks)
            assert table[name].to_pylist().count(0) == sum(task[name] == 0 for task in tasks)


KINDS = {"whole": "INTEGER", "real": "REAL", "text": "TEXT", "truth": "BOOLEAN", "any": ""}


def sheets(folder, *rows):
    """A folder as of --csv, in a path with characters that need care."""
    folder = folder / "a ?#%"
    folder.mkdir()
    (folder / "columns.csv").write_text("table_name,column_name,type,unit\r\n" + "".join(f'"t","{name}","{kind}",""\r\n' for name, kind in KINDS.items()))
    (folder / "t.csv").write_text("\r\n".join([",".join(KINDS), *rows, ""]), newline="")
    return folder


def written(folder):
    return pyarrow.parquet.ParquetFile(folder / "t" / "run=r" / "part-0.parquet").read().to_pydict()


def test_each_type_knows_null(tmp_path):
    """An empty cell is null, an empty text is not; of the characters before a text that protect spreadsheets, one goes."""
    folder = sheets(tmp_path, ",,,,", f'{2**63 - 1},0.1,"",true,3', '0,0,"\'\'=1\nb""",false,0.5', '-1,1e-300,"\'@a",true,false')
    assert crema.parquet.write(folder, tmp_path, "r") == {"t": 4}
    assert written(tmp_path) == {"whole": [None, 2**63 - 1, 0, -1], "real": [None, 0.1, 0, 1e-300], "text": [None, "", "'=1\nb\"", "@a"],
                                 "truth": [None, True, False, True], "any": [None, 3, 0.5, 0]}


def test_cells_that_do_not_fit(tmp_path, monkeypatch):
    """A text larger than a block is read, an integer that SQLite cannot hold is null; the rest of their table is as it was."""
    monkeypatch.setattr(crema.parquet, "BLOCK", 1000)
    folder = sheets(tmp_path, '1,0.5,"a",true,1', f'2,0.5,"{"b" * 5000}",true,2', f'{2**63},0.5,"c",,3', f'{2**64 - 1},,,,')
    assert crema.parquet.write(folder, tmp_path, "r") == {"t": 4}
    assert written(tmp_path) == {"whole": [1, 2, None, None], "real": [0.5, 0.5, 0.5, None], "text": ["a", "b" * 5000, "c", None],
                                 "truth": [True, True, None, None], "any": [1, 2, 3, None]}
    assert crema.parquet.read(folder)["t"].to_pydict() == written(tmp_path)


READS = "import sys, crema.parquet, pyarrow\ncrema.parquet.ROWS, crema.parquet.BLOCK = 1000, 1 << 16\ncrema.parquet.write(sys.argv[1], sys.argv[2], 'r')\nprint(pyarrow.default_memory_pool().max_memory())"


@pytest.mark.parametrize("cell", [f"{2**63},,,,", f'1,,"{"x" * 150_000}",,'], ids=["an integer", "a text"])
def test_memory_does_not_grow_with_the_run(tmp_path, cell):
    """One cell that does not fit, at the end of files that are larger than what is read ahead (32 blocks) and several row groups."""
    most = {}
    for size in (12, 36):
        (tmp_path / str(size)).mkdir()
        row = f'1,0.5,"{"a" * 1000}",true,2'
        folder = sheets(tmp_path / str(size), *[row] * (size << 10), cell)
        done = subprocess.run([sys.executable, "-c", READS, folder, tmp_path / "set"], env={**os.environ, "PYTHONPATH": str(test_reports.ROOT / "python")},
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        most[size] = int(done.stdout)
        file = pyarrow.parquet.ParquetFile(tmp_path / "set" / "t" / "run=r" / "part-0.parquet")
        assert file.metadata.num_rows == (size << 10) + 1
        assert file.read(columns=["whole"])["whole"].null_count == (str(2**63) in cell)
    assert most[36] < 1.3 * most[12], most


def test_blocks_grow_as_needed(tmp_path, monkeypatch):
    """No block is larger than pyarrow can have (2 GiB), and a table that no block helps is not read again and again."""
    tried = []
    rows = crema.parquet._rows
    monkeypatch.setattr(crema.parquet, "_rows", lambda pa, file, types, block: tried.append((file.name, block)) or rows(pa, file, types, block))
    folder = sheets(tmp_path, '1,0.5,"a",true,1', f'2,0.5,"{"b" * 50_000}",true,2')
    for first, blocks in ((100_000, [100_000]), (20_000, [20_000, 20_000, 80_000]), (1000, [1000, 1000, 4000, 16_000, 64_000])):
        monkeypatch.setattr(crema.parquet, "BLOCK", first)
        tried.clear()
        crema.parquet.write(folder, tmp_path, "r")
        assert [block for name, block in tried if name == "t.csv"] == blocks
        assert written(tmp_path)["text"] == ["a", "b" * 50_000]
    (folder / "t.csv").write_text(",".join(KINDS) + '\r\n1,0.5,"a",maybe,1\r\n')
    tried.clear()
    with pytest.raises(pyarrow.ArrowInvalid, match="maybe"):
        crema.parquet.write(folder, tmp_path, "r")
    assert len([name for name, _ in tried if name == "t.csv"]) == 2
    assert crema.parquet.LARGEST_BLOCK < 2**31


def test_a_group_of_large_rows_is_small(tmp_path, monkeypatch):
    monkeypatch.setattr(crema.parquet, "BYTES", 1 << 20)
    monkeypatch.setattr(crema.parquet, "BLOCK", 1 << 19)
    folder = sheets(tmp_path, *(f'{n},0.5,"{"b" * 300_000}",true,1' for n in range(20)), *(f'{n},0.5,"a",true,1' for n in range(20, 2000)))
    crema.parquet.write(folder, tmp_path, "r")
    file = pyarrow.parquet.ParquetFile(tmp_path / "t" / "run=r" / "part-0.parquet")
    assert max(file.read_row_group(i).nbytes for i in range(file.num_row_groups)) < 5 << 19  # and a row that spans two blocks
    assert written(tmp_path)["whole"] == list(range(2000))


def test_memory_is_bounded(runs, folder):
    file = pyarrow.parquet.ParquetFile(folder / "tasks" / f"run={runs[1].run.id}" / "part-0.parquet")
    rows = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert rows[0] == ROWS and len(rows) == 2 and sum(rows) == runs[1].counts["tasks"]


MEMORY = "import sys, crema\nrun = crema.load(dir=sys.argv[1])\nif sys.argv[3:]: run.json\nprint(run.to_parquet(sys.argv[2])['tasks'])"


def test_a_large_run_is_written_in_little_memory(runs, tmp_path):
    """The limit is effective: the same run's JSON does not fit."""
    subprocess.run([MAKER, tmp_path / "journal", "40000", "10"], check=True, capture_output=True)
    command = ["prlimit", f"--data={550 << 20}", sys.executable, "-c", MEMORY, tmp_path / "journal", tmp_path / "set"]
    env = {**os.environ, "PYTHONPATH": str(test_reports.ROOT / "python"), "CREMA_PROGRAM": str(test_reports.ROOT / "build" / "crema")}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.stdout == "40040\n", done.stderr
    assert "MemoryError" in subprocess.run([*command, "json"], env=env, capture_output=True, text=True).stderr


def test_duckdb(runs, folder):
    sums = duckdb.sql(f"""SELECT run, count(*), sum(read_bytes), count(storage_read_bytes), max(wall_seconds)
        FROM read_parquet('{folder}/tasks/*/*.parquet', hive_partitioning=true) GROUP BY run""").fetchall()
    assert sorted(sums) == sorted((w.run.id, len(tasks := w.run.json["tasks"]), sum(t["read_bytes"] or 0 for t in tasks),
                                   sum(t["storage_read_bytes"] is not None for t in tasks),
                                   max((t["wall_seconds"] for t in tasks if t["wall_seconds"] is not None))) for w in runs)
    for table in runs[0].counts:  # each table of three runs is one relation
        ((count,),) = duckdb.sql(f"SELECT count(*) FROM read_parquet('{folder}/{table}/*/*.parquet', hive_partitioning=true)").fetchall()
        assert count == sum(w.counts[table] for w in runs), table
    metrics = duckdb.sql(f"SELECT run, wall_time, state FROM read_parquet('{folder}/runs/*/*.parquet', hive_partitioning=true)").fetchall()
    assert {row[0]: row[1:] for row in metrics} == {w.run.id: (w.run.metrics["wall_time"], w.run.metrics["state"]) for w in runs}


def test_dask_dataframe(runs, folder):
    frame = dask.dataframe.read_parquet(folder / "tasks", engine="pyarrow")
    found = frame.groupby("run", observed=True).read_bytes.sum().compute(scheduler="synchronous")
    assert dict(found) == {w.run.id: sum(t["read_bytes"] or 0 for t in w.run.json["tasks"]) for w in runs}


def test_a_failure_leaves_what_was_there(runs, folder, monkeypatch):
    """Neither a partial file nor a temporary one is left."""
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    monkeypatch.setattr(crema.parquet, "_column", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        crema.parquet.write(runs[2].sheets, folder, runs[2].run.id)
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before


def test_without_pyarrow(runs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        crema.parquet.write(runs[2].sheets, tmp_path, "r")
    with pytest.raises(ImportError, match="pip install pyarrow"):
        crema.parquet.read(runs[2].sheets)


def test_a_file_of_json_is_no_source(runs, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps(runs[2].run.json))
    with pytest.raises(crema.CremaError, match="loaded from a file"):
        crema.load(tmp_path / "run.json").to_parquet(tmp_path)
    with pytest.raises(crema.CremaError, match="the page, Arrow and Parquet"):
        crema.load(tmp_path / "run.json").to_arrow()
