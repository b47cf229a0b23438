"""The messages of a worker's agent, from the file that it wrote for CREMA_COLLECTOR=dir:."""

import struct
import time
import zlib

import msgpack

HEAD = struct.Struct("<IBBH16sQQIIII")
HELLO, DATA = 4, 7
KINDS = {1: "start", 2: "progress", 3: "end", 4: "amend", 8: "sample", 9: "host", 10: "dask", 11: "totals", 12: "file", 13: "codec",
         14: "goodbye", 16: "server", 17: "section", 18: "gauge", 20: "module", 21: "stack", 22: "doing", 23: "lines"}


def frames(text):
    at = 0
    while at + HEAD.size <= len(text):
        magic, version, kind, flags, worker, stream, seq, count, raw, stored, crc = HEAD.unpack_from(text, at)
        body = text[at + HEAD.size:at + HEAD.size + stored]
        head = HEAD.pack(magic, version, kind, flags, worker, stream, seq, count, raw, stored, 0)
        assert magic == 0x464D5243 and crc == zlib.crc32(head + body), "a frame is torn"
        if kind in (HELLO, DATA):
            yield kind, seq, msgpack.unpackb(zlib.decompress(body) if flags & 1 else body, strict_map_key=False)
        at += HEAD.size + stored


def read(directory):
    """{kind: [contents of the messages]}, tasks as {name: value}; [seq, ...] of the frames."""
    found, names, numbers = {name: [] for name in [*KINDS.values(), "hello"]}, [], []
    for path in sorted(directory.glob("*.crema")):
        for kind, seq, payload in frames(path.read_bytes()):
            if kind == HELLO:
                found["hello"].append(payload["facts"])
                names = payload["task_fields"]
                continue
            numbers.append((seq, len(payload)))
            for number, *rest in payload:
                name = KINDS[number]
                found[name].append(dict(zip(names, rest[1:]), rev=rest[0]) if number <= 4 else rest if number == 10 else rest[0])
    return found, numbers


def wait(directory, seconds=20):
    """Everything that the agent wrote, once it has sent its goodbye."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            found, numbers = read(directory)
        except (AssertionError, zlib.error, struct.error):
            found = {"goodbye": []}  # it is being written
        if found["goodbye"]:
            return found, numbers
        time.sleep(0.02)
    raise AssertionError(f"no goodbye in {[p.name for p in directory.iterdir()]}")
