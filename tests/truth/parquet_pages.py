# SPDX-License-Identifier: BSD-3-Clause
"""The pages of a Parquet file from its page headers (Thrift's compact protocol), read without Arrow:
their number, and their compressed and uncompressed sizes."""

import struct
from pathlib import Path

STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(13)


class Reader:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def number(self):
        n = self.varint()
        return n >> 1 ^ -(n & 1)

    def value(self, kind):
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind == BYTE:
            self.at += 1
            return self.data[self.at - 1]
        if kind in (I16, I32, I64):
            return self.number()
        if kind == DOUBLE:
            self.at += 8
            return struct.unpack_from("<d", self.data, self.at - 8)[0]
        if kind == BINARY:
            size = self.varint()
            self.at += size
            return self.data[self.at - size:self.at]
        if kind in (LIST, SET):
            head = self.data[self.at]
            self.at += 1
            size = head >> 4 if head >> 4 < 15 else self.varint()
            if head & 15 in (TRUE, FALSE):
                self.at += size
                return None
            return [self.value(head & 15) for _ in range(size)]
        assert kind == STRUCT, f"no Thrift type in these files: {kind}"
        return self.fields()

    def fields(self):
        """{field number: value} of a struct."""
        found, number = {}, 0
        while True:
            head = self.data[self.at]
            self.at += 1
            if head & 15 == STOP:
                return found
            number = number + (head >> 4) if head >> 4 else self.number()
            found[number] = self.value(head & 15)


def pages(path):
    """[(compressed, uncompressed)] of all pages of all columns."""
    data, found = Path(path).read_bytes(), []
    (size,) = struct.unpack_from("<I", data, len(data) - 8)
    footer = Reader(data, len(data) - 8 - size).fields()
    for group in footer[4]:
        for chunk in group[1]:
            column = chunk[3]
            at = min(column[n] for n in (9, 11) if n in column)  # first data page, dictionary page
            end = at + column[7]
            while at < end:
                header = Reader(data, at)
                page = header.fields()
                found.append((page[3], page[2]))
                at = header.at + page[3]
            assert at == end
    return found
