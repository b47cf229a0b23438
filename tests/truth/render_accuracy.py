"""Writes docs/accuracy.md from the rows that tests recorded while they asserted them.

    render_accuracy.py --cells cells.json [again.json] --time time.json --output docs/accuracy.md

What failed beside others on a busy machine may have run again, alone: again.json holds those rows, and the
document names them.
Status 1 when a cell is wrong, a table is empty or a test failed: then the document says so.
"""

import argparse
import datetime
import json
import sys
from pathlib import Path

HEAD = """# Accuracy

Made by `make accuracy`; do not edit. Each row is an assertion of a test that ran on this machine:
crema's value beside a truth that was found without crema. Verdicts: **exact** (difference 0);
**within x %** (of the truth; of a truth "a .. b", what lies between is not told apart);
**not measurable, reported as unknown** (crema says null, and why). A wrong cell makes the target fail.

Handlers of signals that interrupt a counted call: their calls are counted, exactly on x86_64
(`tests/shim/test_signals.c`). Not exact: on aarch64 a handler's read may be lost where it interrupts the counting itself (four
instructions); a read of another file at that place may be in the interrupted file's row, the task's sums stay right;
and what a handler waits inside a call that waits is in both, so `unclassified` may be negative.
"""
TIME_HEAD = """
## Time classes

Programs of tests/shim/test_time.c that spend a known time in one class: at least 95 % (and at most
102 %) of it must be in that class and at most 2 % of it in any other. Where a program really spends
time in a second class too, that one is left out of the bound and named.

| cell | class | truth (how) | truth, ns | crema, ns | difference, ns | share in its class | largest elsewhere | verdict |
|---|---|---|---:|---:|---:|---:|---|---|
"""


def number(value):
    if isinstance(value, list):
        least, most = value
        return number(least) if least == most else f"{number(least)} .. {number(most)}"
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6f}"


def verdict(row, text):
    return text if row["right"] else "**WRONG**" + ("" if text == "wrong" else f": {text}")


def cells_table(title, number_name, rows):
    lines = [f"\n## {title}\n", f"`{number_name}`\n",
             "| cell | truth (how) | truth | crema | difference | verdict |", "|---|---|---:|---:|---:|---|"]
    for row in rows:
        tried = bool(row["how"])
        difference = "" if row["difference"] is None else number(row["difference"])
        truth = number(row["truth"]) if row["truth"] is not None else ""
        lines.append(f"| {row['cell']} | {row['how']} | {truth} | {number(row['crema']) if tried else ''} "
                     f"| {difference} | {verdict(row, row['verdict'])} |")
    return "\n".join(lines) + "\n"


def time_rows(path):
    """The lines of each program: first its class, then what it left out of the other bound."""
    rows = []
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if "what" in row:
            rows.append({**row, "left_out": None})
        else:
            rows[-1]["left_out"] = row["left_out"]
            rows[-1]["right"] = rows[-1]["right"] and row["right"]
    for row in rows:
        # Without its second line the program ended at the first.
        row["right"] = bool(row["right"]) and row["left_out"] is not None
    return rows


def time_table(rows):
    lines = []
    for row in rows:
        name, _, how = row["what"].partition(" | ")
        known, seen = row["known_ns"], row["times"][row["class"]]
        excused = [c for c in row["left_out"] or [] if c != row["class"]]
        most = max(((ns, c) for c, ns in row["times"].items() if c != row["class"] and c not in excused))
        elsewhere = f"{100 * most[0] / known:.2f} % ({most[1]})" if most[0] else "0 %"
        if excused:
            elsewhere += f"; left out: {', '.join(excused)}"
        off = 100 * abs(seen - known) / known
        lines.append(f"| {name} | {row['class']} | {how or 'its own clocks'} | {known:,} | {seen:,} | {seen - known:,} "
                     f"| {100 * seen / known:.2f} % | {elsewhere} "
                     f"| {verdict(row, f'within {max(off, 0.01):.2f} %' if seen != known else 'exact')} |")
    return TIME_HEAD + "\n".join(lines) + "\n"


def merged(first, again):
    """The rows of the second run in place of the first one's of the same names; which of these were wrong."""
    new = {(row["table"], row["cell"]) for row in again["rows"]}
    repeated = sorted({f"{r['table']}: {r['cell']}" for r in first["rows"]
                       if (r["table"], r["cell"]) in new and not r["right"]})
    kept = [row for row in first["rows"] if (row["table"], row["cell"]) not in new]
    return {**first, "status": again["status"], "rows": [*kept, *again["rows"]]}, repeated


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", required=True, type=Path, nargs="+")
    for name in ("--time", "--output"):
        parser.add_argument(name, required=True, type=Path)
    args = parser.parse_args()
    recorded, time, repeated = json.loads(args.cells[0].read_text()), time_rows(args.time), []
    if len(args.cells) > 1 and args.cells[1].exists():
        recorded, repeated = merged(recorded, json.loads(args.cells[1].read_text()))
    machine = {"date": datetime.date.today().isoformat(), **recorded["environment"]}
    rows = recorded["rows"]
    wrong = [f"{row['table']}: {row['cell']}" for row in rows if not row["right"]]
    wrong += [f"time: {row['what'].partition(' | ')[0]}" for row in time if not row["right"]]
    wrong += [f"{name}: no cell ran" for name in recorded["tables"] if not any(r["table"] == name for r in rows)]
    wrong += [] if time else ["time: no cell ran"]
    wrong += ["a test failed, so cells may be missing"] if recorded["status"] else []
    text = HEAD + "\n" + "".join(f"- {name}: {value}\n" for name, value in machine.items())
    if wrong:
        text += "\n## WRONG\n\n" + "".join(f"- {name}\n" for name in wrong)
    count = {"exact": 0, "within": 0, "not measurable": 0, "not tried": 0}
    for text_of in [row["verdict"] for row in rows if row["right"]]:
        count[next(name for name in count if text_of.startswith(name))] += 1
    count["within"] += sum(row["right"] for row in time)
    counts = ", ".join(f"{n} {name}" for name, n in {**count, "wrong": len(wrong)}.items())
    text += f"\n{len(rows) + len(time)} cells: {counts}.\n"
    if repeated:
        text += "\nWrong beside other tests, and right when run again alone:\n\n"
        text += "".join(f"- {name}\n" for name in repeated)
    for name, title in recorded["tables"].items():
        text += cells_table(title, name, [row for row in rows if row["table"] == name])
    args.output.write_text(text + time_table(time))
    for name in wrong:
        print("wrong:", name, file=sys.stderr)
    print(f"{args.output}: {len(rows) + len(time)} cells, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
