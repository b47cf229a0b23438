"""Names chosen to break programs that print them. Keys of Dask may be any text, file names any
bytes but 0 and '/'. Use TEXTS for text, FILES for names of real files, and RAW for names that only a
journal made by hand (frames.py) can contain."""

import shutil

TEXTS = {
    "formula": "=cmd|' /C calc'!A0",
    "plus": "+1+1",
    "minus": "-1+1",
    "at": "@SUM(1)",
    "tab": "\t=1",
    "return": "\r=1",
    "apostrophe": "'=1",
    "wide": "\uff1d1+1",
    "quotes": "a\"b'c`d\\e",
    "cells": '","=1+1","',
    "lines": "one\ntwo\r\nthree",
    "html": "<img src=x onerror=alert(1)>",
    "script": "</script><script>alert(1)</script>",
    "template": "${alert(1)}{{1+1}}`",
    "sql": "x'); DROP TABLE tasks; --",
    "escape": "\033[31mred\033]0;title\a",
    "control": "".join(map(chr, range(1, 32))) + "\x7f",
    "direction": "\u202e\u061cabc\u2066\u2028\u2029",
    "label": 'x"} 1\nfake_metric{a="b',
    "percent": "%s%n%d",
    "emoji": "caf\u00e9 \U0001f600",
    "long": "k" * 4096,
    "long_wide": "\u6f22" * 1365,
}
# For uproot a colon ends the path, and a slash ends the folder's name.
FILES = {name: text.replace("/", "\\").replace(":", ";")[:60] + ".root" for name, text in TEXTS.items()
         if name not in ("long", "long_wide")}
RAW = {
    "nul": b"before\0after",
    "not_utf8": b"\xff\xfe\xc3(\xed\xa0\x80\xf4\x90\x80\x80",
    "cut_utf8": "\u6f22".encode()[:2],
}


def files(directory, source):
    """{name: path} of copies of `source` with hostile names."""
    directory.mkdir(exist_ok=True)
    return {name: shutil.copy(source, directory / file) for name, file in FILES.items()}


def read_first(path, size=4096):
    """Runs on a worker; returns how many bytes were read."""
    with open(path, "rb", buffering=0) as file:
        return len(file.read(size))


def read_all(client, paths):
    """Submits a task with each text as its key, which reads a file with a hostile name; returns {name: key}."""
    futures = {}
    for i, (name, text) in enumerate(TEXTS.items()):
        path = list(paths.values())[i % len(paths)]
        futures[name] = client.submit(read_first, str(path), key=text, pure=False)
    for future in futures.values():
        assert future.result(timeout=120) == 4096
    return TEXTS
