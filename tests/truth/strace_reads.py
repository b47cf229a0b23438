"""Counts the bytes and calls that read regular files, as strace sees them.

A worker is started under strace with the prefix of prefix(); count() reads strace's output file,
also while it is being written or after a SIGKILL.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

CALLS = "read,pread64,readv,preadv,preadv2"
STARTED = re.compile(r"^(\d+) +(?:read|pread64|readv|preadv|preadv2)\((\d+)<([^>]*)>")
RESUMED = re.compile(r"^(\d+) +<\.\.\. (?:read|pread64|readv|preadv|preadv2) resumed>")
RESULT = re.compile(r"\) += (-?\d+|\?)")


def prefix(output, env):
    """A prefix for a command: strace sets env only for the command, so strace itself is not preloaded."""
    words = ["strace", "-f", "-y", "--seccomp-bpf", "-s", "0", "-e", f"trace={CALLS}", "-e", "signal=none"]
    for name, value in env.items():
        words += ["-E", f"{name}={value}"]
    return [*words, "-o", str(output)]


class Counter:
    """Counts a growing file: each call adds the new lines."""

    def __init__(self, output):
        self.output, self.read_bytes = Path(output), 0
        self.waiting = {}  # thread -> path of its call that had not returned yet
        self.found = defaultdict(lambda: {"calls": 0, "bytes": 0})

    def count(self):
        """{path: {"calls", "bytes"}} of calls that returned, without failed ones."""
        with open(self.output, "rb") as file:
            file.seek(self.read_bytes)
            data = file.read()
        data = data[:data.rfind(b"\n") + 1]
        self.read_bytes += len(data)
        add(data.decode(errors="replace").splitlines(), self.waiting, self.found)
        return self.found


def count(output):
    return Counter(output).count()


def add(lines, waiting, found):
    for line in lines:
        match = STARTED.match(line)
        if match:
            thread, _, path = match.groups()
            if line.endswith("<unfinished ...>"):
                waiting[thread] = path
                continue
        else:
            match = RESUMED.match(line)
            if not match:
                continue
            path = waiting.pop(match.group(1), None)
        result = RESULT.search(line)
        # A call that SIGKILL interrupted ends with -512 (ERESTARTSYS), which strace prints unsigned.
        if path is None or not result or result.group(1) == "?" or not 0 <= int(result.group(1)) < 1 << 63:
            continue
        found[path]["calls"] += 1
        found[path]["bytes"] += int(result.group(1))


if __name__ == "__main__":
    for name, row in sorted(count(sys.argv[1]).items()):
        print(f"{row['bytes']:14d} {row['calls']:8d} {name}")
