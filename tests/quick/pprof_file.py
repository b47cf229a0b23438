"""Reads a pprof profile: the wire format of protocol buffers, and the fields of profile.proto by their numbers."""

import gzip


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def packed(data):
    at, found = 0, []
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


def message(data):
    """{field: [numbers or bytes, in order]}"""
    at, found = 0, {}
    while at < len(data):
        tag, at = varint(data, at)
        assert tag & 7 in (0, 2), tag
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
        found.setdefault(tag >> 3, []).append(value)
    assert at == len(data)
    return found


def read(path):
    """{types: [(name, unit)], samples: [{frames: [(function, file, line)] innermost first, values, labels}], ...}"""
    profile = message(gzip.decompress(path.read_bytes()))
    text = [t.decode() for t in profile[6]]
    assert text[0] == ""

    def pair(data):
        fields = message(data)
        return tuple(text[fields[number][0]] for number in (1, 2))
    functions = {m[1][0]: (text[m[2][0]], text[m[4][0]]) for m in map(message, profile[5])}
    locations = {}
    for m in map(message, profile[4]):
        line = message(m[4][0])
        locations[m[1][0]] = (*functions[line[1][0]], line[2][0])
    samples = [{"frames": [locations[n] for n in packed(m[1][0])], "values": packed(m[2][0]), "labels": dict(map(pair, m[3]))}
               for m in map(message, profile[2])]
    return {"types": [pair(m) for m in profile[1]], "samples": samples, "default": text[profile[14][0]], "period": profile[12][0] if 12 in profile else None,
            "begin_ns": profile[9][0], "duration_ns": profile[10][0]}
