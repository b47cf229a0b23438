# SPDX-License-Identifier: BSD-3-Clause
"""Tables of a run for Arrow, and as Parquet: FOLDER/TABLE/run=ID/part-0.parquet, so that the runs of one folder are one data set.

The source is the folder of `crema report --csv`, which pyarrow reads in blocks, so memory does not grow with the run. Its table
`columns` has the types. Numbers without a declared type (metrics) are float64 in every run, so that runs have the same types.
"""

import os
from pathlib import Path

ROWS = 20_000  # of a row group; fewer if they are large
BYTES = 64 << 20
BLOCK = 1 << 20  # bytes of CSV that are read at once; pyarrow reads 32 ahead, and reserves as much for each column of texts
LARGEST_BLOCK = 1 << 30  # for the largest cells; pyarrow's limit is 2 GiB
LARGEST = 2**63 - 1


def _arrow():
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise ImportError("to_arrow() and to_parquet() need pyarrow (pip install pyarrow)") from None
    return pyarrow


def _rows(pa, file, types, block):
    """Batches of rows. A quoted cell is text, also an empty one; an empty cell is null."""
    return pa.csv.open_csv(file, read_options=pa.csv.ReadOptions(block_size=block), parse_options=pa.csv.ParseOptions(newlines_in_values=True),
                           convert_options=pa.csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[""],
                                                                 strings_can_be_null=True, quoted_strings_can_be_null=False))


def _declared(pa, folder):
    """{table: {column: (declared type, unit)}}, in their order; without `run`, which is in the folder's name."""
    names = ["table_name", "column_name", "type", "unit"]
    found = {}
    for batch in _rows(pa, folder / "columns.csv", dict.fromkeys(names, pa.string()), BLOCK):
        for table, column, kind, unit in zip(*(batch[name].to_pylist() for name in names)):
            columns = found.setdefault(table, {})
            if column != "run":
                columns[column] = kind, unit
    return found


def _number(text, whole):
    """As in SQLite: true is 1, and an integer that is too large is null."""
    if text is None:
        return None
    if whole:
        return n if (n := int(text)) <= LARGEST else None
    return float({"true": 1, "false": 0}.get(text, text))


def _column(pa, values, kind):
    if kind == pa.string():  # one ' protects spreadsheets
        return pa.compute.replace_substring_regex(values, "^'", "", max_replacements=1)
    if values.type == kind:
        return values
    return pa.array([_number(text, kind == pa.int64()) for text in values.to_pylist()], kind)


def _groups(pa, batches):
    """Tables of ROWS rows, or fewer if they have BYTES; the last one has the rest."""
    kept, count, size = [], 0, 0
    for batch in batches:
        kept.append(batch)
        count, size = count + batch.num_rows, size + batch.nbytes
        if count >= ROWS or size >= BYTES:
            table = pa.Table.from_batches(kept)
            while table.num_rows >= ROWS or table.nbytes >= BYTES:
                yield table.slice(0, ROWS)
                table = table.slice(ROWS)
            kept, count, size = table.to_batches(), table.num_rows, table.nbytes
    if count:
        yield pa.Table.from_batches(kept)


def _tables(pa, sheet, declared, schema, careful, block):
    """Tables of ROWS rows. careful: for integers that do not fit in 64 bits."""
    read = {name: pa.string() if not kind or (careful and kind == "INTEGER") else schema.field(name).type for name, (kind, _) in declared.items()}
    for group in _groups(pa, _rows(pa, sheet, read, block)):
        yield pa.Table.from_arrays([_column(pa, group[field.name], field.type) for field in schema], schema=schema)


def _read(pa, sheet, declared, take):
    """take(schema, tables) for a table; again, with all tables, while there are cells that do not fit: in 64 bits, then in a block."""
    kinds = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string(), "BOOLEAN": pa.bool_(), "": pa.float64()}
    schema = pa.schema([pa.field(name, kinds[kind], metadata={"unit": unit} if unit else None) for name, (kind, unit) in declared.items()])
    careful, block = False, BLOCK
    while True:
        try:
            return take(schema, _tables(pa, sheet, declared, schema, careful, block))
        except pa.ArrowInvalid:
            if careful and (block > sheet.stat().st_size or block >= LARGEST_BLOCK):
                raise
            careful, block = True, min(block * 4, LARGEST_BLOCK) if careful else block


def read(sheets):
    """{table: pyarrow.Table} of every table of the CSV folder."""
    pa = _arrow()
    return {table: _read(pa, Path(sheets) / f"{table}.csv", declared, lambda schema, tables: pa.concat_tables([schema.empty_table(), *tables]))
            for table, declared in sorted(_declared(pa, Path(sheets)).items())}


def write(sheets, folder, run):
    """Writes every table of the CSV folder below `folder`, replacing this run's earlier files. Returns the rows of each table.

    A file gets its name once it is complete: a reader never sees a partial file, or a table twice.
    """
    pa = _arrow()
    found = {}
    for table, declared in sorted(_declared(pa, Path(sheets)).items()):
        place = Path(folder) / table / f"run={run}"
        place.mkdir(parents=True, exist_ok=True)
        part = place / f".part-0.parquet.{os.getpid()}"

        def save(schema, tables, part=part):
            with pa.parquet.ParquetWriter(part, schema, compression="zstd") as writer:
                return sum(writer.write_table(one) or one.num_rows for one in tables)

        try:
            found[table] = _read(pa, Path(sheets) / f"{table}.csv", declared, save)
            os.replace(part, place / "part-0.parquet")
        finally:
            part.unlink(missing_ok=True)
    return found
