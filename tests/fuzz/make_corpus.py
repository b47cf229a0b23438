"""Makes the first files of corpus/: from the journal and the shared memory of a real worker, and by hand.

    python tests/fuzz/make_corpus.py JOURNAL.crema SHARED-MEMORY [OLD=NEW...]

OLD is replaced by NEW, of the same length, in all texts: folders of the machine that it was made on.

What a search has found since is kept: a file's name is the hash of what is in it.
"""

import hashlib
import json
import struct
import sys
import zlib
from pathlib import Path

HERE = Path(__file__).parent / "corpus"
HEAD = struct.Struct("<IBBH16sQQIIII")
MOST = 24_000

REQUESTS = [
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /status.json?token=0123456789abcdef0123456789abcdef HTTP/1.1\r\nHost: localhost:80\r\n\r\n",
    b"HEAD /status.json HTTP/1.1\r\nHost: [::1]:8991\r\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\r\n\r\n",
    b"GET /x HTTP/1.0\r\nHost: evil.example\r\nCookie: crema=1; crema-token=2\r\nAccept-Encoding: gzip\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
]
REPORT = {"bytesread": 66919124, "columns": ["a", "b"], "entries": 800000, "processtime": 4.2, "chunks": 16}
VINE = """# time manager_pid TASK id STATE
1700000000000000 99 MANAGER 99 START time_from_origin
1700000000100000 99 TASK 1 WAITING default FIRST_RESOURCES {"cores":[1,"cores"]}
1700000000200000 99 TASK 1 RUNNING worker-1 FIRST_RESOURCES {"cores":[1,"cores"],"time_commit_start":[1.2,"s"],"time_commit_end":[1.3,"s"],"size_input_mgr":[3,"MB"]} {}
1700000000300000 99 TASK 1 WAITING_RETRIEVAL worker-1
1700000000400000 99 TASK 1 RETRIEVED SUCCESS 0 {"time_worker_start":[1.2,"s"],"time_worker_end":[2.5,"s"],"size_output_mgr":[1,"MB"]} {}
1700000000500000 99 TASK 1 DONE SUCCESS
"""


replace = []


def clean(data):
    for old, new in replace:
        data = data.replace(old, new)
    return data


def cleaned_frame(head, raw):
    """The frame again, around cleaned texts."""
    stored = zlib.compress(raw, 1) if head[3] & 1 else raw
    fields = [*head[:8], len(raw), len(stored), 0]
    fields[10] = zlib.crc32(stored, zlib.crc32(HEAD.pack(*fields)))
    return HEAD.pack(*fields) + stored


def keep(target, data):
    folder = HERE / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


def frames(data):
    at = 0
    while at + HEAD.size <= len(data):
        head = HEAD.unpack_from(data, at)
        end = at + HEAD.size + head[9]
        yield head, data[at:end], data[at + HEAD.size:end]
        at = end


def sealed(data):
    """As the target of that name takes it: each frame a piece, addressed to its worker."""
    out = b""
    for head, whole, stored in frames(data):
        fields = [*head[:4], b"fuzzed-worker-0\0", *head[5:10], 0]
        fields[10] = zlib.crc32(stored, zlib.crc32(HEAD.pack(*fields)))
        if len(whole) < 1 << 15:
            out += struct.pack("<H", len(whole)) + HEAD.pack(*fields) + stored
    return out


def kind_byte(frame_type, count, worker):
    return {4: 0, 7: 1, 10: 2}[frame_type] | min(count, 31) << 2 | worker << 7


def from_journal(data):
    workers, start = {}, b""
    files, messages = [b""], [b""]
    for head, whole, stored in frames(data):
        kind, flags, worker, count = head[2], head[3], head[4], head[7]
        raw = clean(zlib.decompress(stored) if flags & 1 else stored)
        whole = cleaned_frame(head, raw)
        if kind == 1:
            start = whole
        if len(whole) > MOST:
            continue
        if len(files[-1]) + len(whole) > MOST:
            files.append(start)
        files[-1] += whole
        if kind in (4, 7, 10) and len(raw) < 30_000:
            byte = kind_byte(kind, count, workers.setdefault(worker, len(workers)) % 2)
            if len(messages[-1]) + len(raw) > MOST:
                messages.append(b"")
            messages[-1] += bytes([byte]) + struct.pack("<H", len(raw)) + raw
    for one in files[:4]:
        keep("journal", one)
        keep("frame", one[len(start):])
        keep("sealed", sealed(one[len(start):]))
    for one in messages[:6]:
        keep("messages", one)


def from_memory(data):
    out, at = b"", 0
    while at < len(data) and len(out) < MOST:
        if data[at:at + 16] == bytes(16):
            at += 16
            continue
        piece = data[at:at + 240]
        out += struct.pack("<I", at)[:3] + bytes([len(piece)]) + piece
        at += len(piece)
    keep("shm", out)


def main():
    journal, memory, *texts = sys.argv[1:]
    for text in texts:
        old, new = text.encode().split(b"=")
        assert len(old) == len(new)
        replace.append((old, new))
    from_journal(Path(journal).read_bytes())
    from_memory(clean(Path(memory).read_bytes()))
    for request in REQUESTS:
        keep("http", b"0" + request)
        keep("http", b"1" + request)
    keep("json", json.dumps(REPORT).encode())
    keep("json", json.dumps([{}, REPORT]).encode())
    keep("json", VINE.encode())


main()
