"""The kernel's delay accounting of one thread, through netlink: its wait for block devices, in ns.

Needs root and kernel.task_delayacct=1 before the thread starts."""

import os
import socket
import struct

GENERIC = 16
CONTROLLER = 16
GET_FAMILY, FAMILY_ID, FAMILY_NAME = 3, 1, 2
GET, TID, STATS, AGGREGATE = 1, 1, 3, 4
BLKIO_COUNT = 32  # offset in struct taskstats; the delay in ns follows


def attributes(data):
    found = {}
    while len(data) >= 4:
        size, kind = struct.unpack_from("HH", data)
        if size < 4:
            break
        found[kind] = data[4:size]
        data = data[(size + 3) & ~3:]
    return found


def ask(s, family, command, kind, value):
    value += bytes(-len(value) % 4)
    attribute = struct.pack("HH", 4 + len(value), kind) + value
    body = struct.pack("BBH", command, 1, 0) + attribute
    s.send(struct.pack("IHHII", 16 + len(body), family, 1, 0, 0) + body)
    answer = s.recv(8192)
    if struct.unpack_from("H", answer, 4)[0] == 2:
        raise OSError(-struct.unpack_from("i", answer, 16)[0], "taskstats")
    return attributes(answer[20:])


def blkio_ns(tid):
    """Nanoseconds that the thread has waited for block devices; OSError if the kernel does not report it."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, GENERIC) as s:
        s.bind((0, 0))
        family = ask(s, CONTROLLER, GET_FAMILY, FAMILY_NAME, b"TASKSTATS\0")
        number = struct.unpack("H", family[FAMILY_ID][:2])[0]
        answer = ask(s, number, GET, TID, struct.pack("I", tid))
        stats = attributes(answer[AGGREGATE])[STATS]
        return struct.unpack_from("Q", stats, BLKIO_COUNT + 8)[0]


def available():
    try:
        blkio_ns(os.getpid())
    except OSError:
        return False
    return True
