# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program as on a kernel that lacks some system calls: a seccomp filter makes them fail.

    refuse.py ENOSYS pidfd_open,close_range -- COMMAND...

NAME=ERROR makes that call fail with another error. The ioctl PIDFD_GET_INFO always fails, as on kernels before 6.13.
The filter applies to everything that the program starts."""

import ctypes
import errno
import os
import struct
import sys

CALLS = {"memfd_create": 319, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "pidfd_open": 434,
         "clone3": 435, "close_range": 436, "openat2": 437, "cachestat": 451}
if os.uname().machine == "aarch64":
    CALLS["memfd_create"] = 279
IOCTL = 29 if os.uname().machine == "aarch64" else 16
ALL = ",".join(CALLS)
LOAD, JUMP_EQUAL, AND, RETURN = 0x20, 0x15, 0x54, 0x06
ALLOW, ERROR = 0x7FFF0000, 0x00050000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def code(refused):
    """The filter's instructions; refused: {number of the call: errno}."""
    lines = [(LOAD, 0, 0, 0)]  # the call's number
    for number, error in refused.items():
        lines += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, ERROR | error)]
    # ioctl of type 0xff, number 11, any size
    lines += [(JUMP_EQUAL, 0, 4, IOCTL), (LOAD, 0, 0, 24), (AND, 0, 0, 0xFFFF), (JUMP_EQUAL, 0, 1, 0xFF0B),
              (RETURN, 0, 0, ERROR | errno.ENOTTY), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", op, yes, no, k) for op, yes, no, k in lines)


def refuse(refused):
    text = code(refused)
    held = ctypes.create_string_buffer(text, len(text))
    program = Program(len(text) // 8, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "no seccomp filter")


def main():
    usual, names, dash, *command = sys.argv[1:]
    assert dash == "--" and command
    refused = {}
    for name in names.split(","):
        name, _, error = name.partition("=")
        refused[CALLS[name]] = getattr(errno, error or usual)
    refuse(refused)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
