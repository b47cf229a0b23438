"""A run's tables as programs read them: CSV by RFC 4180, SQLite, and the JSON, flattened."""

import json

TABLES = ("workers", "tasks", "chunks", "files", "codecs", "servers", "findings", "sections", "sections_by_dataset", "memory_sections", "custom_metrics",
          "blocking", "lines", "stacks", "worker_memory")


def flat(row):
    """A row of the JSON as in the tables: members of objects are prefixed with the object's name and '_'."""
    found = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found.update({f"{name}_{inner}": v for inner, v in value.items()})
        else:
            found[name] = value
    return found


def same(value, cell):
    """Exactly: integers as integers, floating-point numbers bit for bit, lists as JSON."""
    if isinstance(value, list):
        return json.loads(cell) == value
    if isinstance(value, str) or value is None:
        return cell == value
    return isinstance(cell, (int, float)) and cell == value


def json_rows(report, table):
    if table in ("lines", "stacks"):
        return [flat(row) for row in report["stacks"][table]]
    if table != "files":
        return [flat(row) for row in report[table]]
    rows = [{"kind": "data", **row} for row in report["files"]]
    return rows + [{"kind": "imports", **report["imports"]}, {"kind": "rest", **report["files_rest"]}]


def records(path):
    """RFC 4180, strictly: CRLF, quotes doubled inside quotes, no quote outside. A cell without quotes is
    (text, False), one with quotes (text, True)."""
    text, at, row = path.read_bytes().decode("utf-8"), 0, []
    while at < len(text):
        quoted = text[at] == '"'
        if quoted:
            end = at + 1
            while text[end] != '"' or text[end + 1] == '"':
                end += 2 if text[end] == '"' else 1
            row.append((text[at + 1:end].replace('""', '"'), True))
            at = end + 1
        else:
            end = min(i for i in (text.find(",", at), text.find("\r\n", at)) if i >= 0)
            assert '"' not in text[at:end] and "\n" not in text[at:end], text[at:end]
            row.append((text[at:end], False))
            at = end
        if text[at] == ",":
            at += 1
            continue
        assert text[at:at + 2] == "\r\n", text[at:at + 20]
        at += 2
        yield row
        row = []
    assert not row


def typed(cell, quoted, kind):
    if quoted:
        assert kind in ("TEXT", "")
        return cell[1:] if cell.startswith("'") else cell  # a ' keeps a spreadsheet from evaluating it
    if cell == "":
        return None
    assert kind != "TEXT"
    if cell in ("true", "false"):
        assert kind in ("BOOLEAN", "")
        return int(cell == "true")
    try:
        return int(cell)
    except ValueError:
        return float(cell)


def read_csv(folder, table):
    """Rows with the types of columns.csv."""
    _, *columns = records(folder / "columns.csv")
    types = {c[1][0]: c[2][0] for c in columns if c[0][0] == table}
    header, *rows = records(folder / f"{table}.csv")
    assert [name for name, _ in header] == list(types)
    return [{name: typed(*cell, kind) for (name, kind), cell in zip(types.items(), row, strict=True)} for row in rows]


def read_sql(db, table):
    rows = db.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in rows.description]
    return [dict(zip(names, row, strict=True)) for row in rows]


def check(report, table, rows):
    """Every number and name of the JSON is in its column, and there are no other columns."""
    wanted = json_rows(report, table)
    assert len(rows) == len(wanted) + report["stacks"].get(f"{table}_left_out", 0)
    for row, want in zip(rows, wanted):
        assert row.pop("run") == report["run"]
        # members of an object that is null, and values that rows of imports do not have
        absent = set(row) - set(want)
        assert not any(row[name] is not None for name in absent)
        assert table == "files" or all(name.startswith(("goodbye_", "host_sample_")) for name in absent), absent
        for name, value in want.items():
            if name in row or value is not None:
                assert same(value, row[name]), (name, value, row[name])
