# SPDX-License-Identifier: BSD-3-Clause
"""Tables of a run as Parquet: FOLDER/TABLE/run=ID/part-0.parquet, so that the runs of one folder are one data set.

The source is the database of `crema report --sqlite`, read in parts, so memory does not grow with the run. Its table
`columns` has the types. Numbers without a declared type (metrics) are float64 in every run, so that runs have the same types.
"""

import os
import sqlite3
import urllib.parse
from contextlib import closing
from pathlib import Path

ROWS = 20_000  # in memory at the same time: one row group


def _arrow():
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("to_parquet() needs pyarrow (pip install pyarrow)") from None
    return pyarrow


def _fields(pa, database, table):
    """The declared type of each column, with the unit as metadata; without `run`, which is in the folder's name."""
    types = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string(), "BOOLEAN": pa.bool_(), "": pa.float64()}
    told = database.execute("SELECT column_name, type, unit FROM columns WHERE table_name = ? ORDER BY rowid", (table,))
    return [pa.field(name, types[kind], metadata={"unit": unit} if unit else None) for name, kind, unit in told if name != "run"]


def _column(pa, values, kind):
    if kind == pa.bool_():
        values = [None if value is None else bool(value) for value in values]
    elif kind == pa.float64():
        values = [None if value is None else float(value) for value in values]
    return pa.array(values, kind)


def _write(pa, database, table, file):
    """Returns the number of rows."""
    fields = _fields(pa, database, table)
    columns = ", ".join(f'"{field.name}"' for field in fields)
    rows = database.execute(f'SELECT {columns} FROM "{table}" ORDER BY rowid')
    count = 0
    with pa.parquet.ParquetWriter(file, pa.schema(fields), compression="zstd") as writer:
        while part := rows.fetchmany(ROWS):
            arrays = [_column(pa, values, field.type) for values, field in zip(zip(*part), fields)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))
            count += len(part)
    return count


def write(database, folder, run):
    """Writes every table of the database below `folder`, replacing this run's earlier files. Returns the rows of each table.

    A file gets its name once it is complete: a reader never sees a partial file, or a table twice.
    """
    pa = _arrow()
    found = {}
    with closing(sqlite3.connect(f"file:{urllib.parse.quote(os.fspath(database))}?mode=ro", uri=True)) as source:
        tables = [name for (name,) in source.execute("SELECT DISTINCT table_name FROM columns ORDER BY table_name")]
        for table in tables:
            place = Path(folder) / table / f"run={run}"
            place.mkdir(parents=True, exist_ok=True)
            part = place / f".part-0.parquet.{os.getpid()}"
            try:
                found[table] = _write(pa, source, table, part)
                os.replace(part, place / "part-0.parquet")
            finally:
                part.unlink(missing_ok=True)
    return found
