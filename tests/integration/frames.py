"""Journals made by hand, with any names and numbers, including ones that no current worker would send."""

import re
import struct
import zlib
from pathlib import Path

import msgpack

ROOT = Path(__file__).resolve().parents[2]
FILE_HEADER, CHALLENGE, AUTH, HELLO, WELCOME, REFUSE, DATA, ACK, CLOCK, NOTE = range(1, 11)
DROPPED, DROPPED_RUN, CARRY, CARRIED, PROOF, CHECKPOINT, FOOTER, RUN_TOTALS = range(11, 19)
TASK_PROGRESS, TASK_END, FILE = 2, 3, 12
BASE_NS, BOOT_NS = 1_795_000_000_000_000_000, 10**12
HEAD = struct.Struct("<IBBH16sQQIIII")


def frame(kind, payload, worker=b"\0" * 16, seq=0, count=0, version=1, stream=1):
    """The bytes of one frame of contract/wire.h; payload: anything that msgpack can pack."""
    raw = msgpack.packb(payload, use_bin_type=False, unicode_errors="surrogateescape")
    return sealed(kind, raw, worker, seq, count, version, stream=stream)


def sealed(kind, stored, worker=b"\0" * 16, seq=0, count=0, version=1, flags=0, raw_bytes=None, stream=1):
    """A frame with a correct checksum around any stored bytes; flags 1: zlib-compressed."""
    raw_bytes = len(stored) if raw_bytes is None else raw_bytes
    fields = (0x464D5243, version, kind, flags, worker, stream, seq, count, raw_bytes, len(stored))
    return HEAD.pack(*fields, zlib.crc32(HEAD.pack(*fields, 0) + stored)) + stored


def read(path):
    """(type, payload) of each frame of a file."""
    data, at, found = Path(path).read_bytes(), 0, []
    while at < len(data):
        _, _, kind, flags, *_, stored, _ = HEAD.unpack_from(data, at)
        payload = data[at + HEAD.size:at + HEAD.size + stored]
        found.append((kind, msgpack.unpackb(zlib.decompress(payload) if flags & 1 else payload, strict_map_key=False)))
        at += HEAD.size + stored
    return found


def names():
    """The fields of a task record, in the order of the contract's tables."""
    fields = re.findall(r"^FIELD\((\w+),", (ROOT / "contract/task_fields.def").read_text(), re.M)
    text = (ROOT / "contract/counters.def").read_text()
    times, counts = (re.findall(rf"^{kind}\((\w+),", text, re.M) for kind in ("TIME", "COUNT"))
    return fields + [f"{t}_ns" for t in times] + [f"pool_{t}_ns" for t in times] + counts


class Journal:
    """Frames of one file in DIR; write() writes it."""

    def __init__(self, directory, format=1):
        Path(directory).mkdir(parents=True, exist_ok=True)
        self.path = Path(directory) / f"{BASE_NS:020}-journal.crema"
        self.frames = [frame(FILE_HEADER, {"format": format, "kind": "journal", "created_ns": BASE_NS})]
        self.order, self.seq = names(), 0

    def worker(self, worker=b"w" * 16, **facts):
        known = {"host": "node", "pid": 1, "boot_ns": BOOT_NS, "real_ns": BASE_NS, **facts}
        self.frames.append(frame(HELLO, {"facts": known, "task_fields": self.order}, worker))

    def message(self, message, worker=b"w" * 16, version=1):
        self.frames.append(frame(DATA, [message], worker, self.seq, 1, version))
        self.seq += 1

    def task(self, attempt, key, start_ms=0, stop_ms=100, worker=b"w" * 16, version=1, **values):
        said = {"attempt": attempt, "thread": 7, "status": "ok", "key": key, "prefix": key, "span": "span-1",
                "start_boot_ns": BOOT_NS + start_ms * 10**6, "stop_boot_ns": BOOT_NS + stop_ms * 10**6,
                "wall_ns": (stop_ms - start_ms) * 10**6, **values}
        assert set(said) <= set(self.order), set(said) - set(self.order)
        self.message([TASK_END, 1, *(said.get(name) for name in self.order)], worker, version)

    def write(self):
        self.path.write_bytes(b"".join(self.frames))
        return self.path.parent
