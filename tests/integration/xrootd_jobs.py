"""What test_xrootd.py runs on workers, and once in a plain Python: every way to read by XRootD."""

import hashlib
import os
import re
import sys
import threading
import time


def wait_for(others, folder, name):
    open(os.path.join(folder, name), "w").close()
    while len(os.listdir(folder)) < others:
        time.sleep(0.005)


def opened(url):
    from XRootD import client

    file = client.File()
    status, _ = file.open(url)
    assert status.ok, f"{url}: {status.message}"
    return file


def asked(ask, times=1):
    """A callback's arguments for each call: (status, response, hosts)."""
    answers, done = [], threading.Semaphore(0)

    def answer(*args):
        answers.append(args)
        done.release()

    for _ in range(times):
        status = ask(answer)
        if not status.ok:
            return [status]
    for _ in range(times):
        done.acquire()
    return answers


def read_sync(url, ranges):
    with opened(url) as file:
        return sum(len(file.read(offset, size)[1]) for offset, size in ranges)


def plain_read(path):
    with open(path, "rb", buffering=0) as file:
        return len(file.read(1000))


def read_native(url, ranges):
    """By the class of C++, as ROOT's TFile does: no method of XRootD.client is called."""
    from pyxrootd import client

    file = client.File()
    assert file.open(url)[0]["ok"]
    answers = [file.read(offset, size) for offset, size in ranges]
    file.close()
    return sum(len(data) for _, data in answers)


def read_when_told(url, ranges, folder):
    """Once others have read meanwhile."""
    wait_for(2, folder, "begun")
    return read_callback(url, ranges)


def read_by_plugin(url, ranges, scheme):
    """As a File that a client's plug-in reads: the client returns the plug-in's URL, or none."""
    from XRootD import client

    class File(client.File):
        def get_property(self, name):
            return scheme and super().get_property(name).replace("root://", f"{scheme}://") if name == "LastURL" else super().get_property(name)

    file = File()
    assert file.open(url)[0].ok
    with file:
        return sum(len(file.read(offset, size)[1]) for offset, size in ranges)


def read_callback(url, ranges):
    with opened(url) as file:
        answers = [asked(lambda answer: file.read(*each, callback=answer))[0] for each in ranges]
    return sum(len(response) for _, response, _ in answers)


def vector_sync(url, ranges):
    with opened(url) as file:
        return file.vector_read(ranges)[1].size


def vector_callback(url, ranges):
    with opened(url) as file:
        ((_, response, _),) = asked(lambda answer: file.vector_read(chunks=ranges, callback=answer))
    return sum(chunk.length for chunk in response.chunks)


def read_lines(url, ranges):
    """Reads the text file in the same folder."""
    with opened(url.replace("a.bin", "lines.txt")) as file:
        return sum(len(file.readline(chunksize=4096)) for _ in ranges)


def copy(url, path):
    from XRootD import client

    status, _ = client.FileSystem(url).copy(url, path, force=True)
    assert status.ok
    return os.path.getsize(path)


def only_stat(url):
    from XRootD import client

    return client.FileSystem(url).stat("/a.bin")[1].size


def only_open(url):
    from XRootD import client

    return client.File().open(url)[0].ok


def fsspec_ranges(url, ranges, folder=None, name=None, others=1):
    """All tasks of a process share fsspec's only loop and its open files."""
    import fsspec

    files, path = fsspec.core.url_to_fs(url)
    if folder:
        wait_for(others, folder, name)
    return sum(len(files.cat_file(path, start=offset, end=offset + size)) for offset, size in ranges)


def uproot_read(url, handler, folder=None, name=None, others=1, columns=("MET_pt", "Muon_pt", "Jet_eta")):
    import uproot

    options = {"handler": getattr(uproot, handler)} if handler else {}
    with uproot.open({url: "Events"}, **options) as tree:
        if folder:
            wait_for(others, folder, name)
        return sum(len(tree[column].array()) for column in columns)


def with_packages(folder, function, *args):
    """Calls it when the packages of this folder can be imported, too."""
    if folder not in sys.path:
        sys.path.append(folder)
    return function(*args)


def shown(one):
    """An answer as text, with a hash for data and without addresses of objects."""
    if isinstance(one, BaseException):
        return f"{type(one).__name__}: {one}"
    if isinstance(one, bytes):
        return hashlib.sha256(one).hexdigest()
    if isinstance(one, (tuple, list)):
        return [shown(each) for each in one]
    return re.sub(r" at 0x[0-9a-f]+", "", repr(one))


def tried(ask):
    try:
        return shown(ask())
    except Exception as error:
        return shown(error)


def behaviour(url):
    """Results of all successes and failures, as text."""
    from XRootD import client

    file, closed = opened(url), client.File()
    missing = client.File()
    found = [tried(lambda: file.read(10, 100)), tried(lambda: file.read(size=5)),
             tried(lambda: file.read(1_000_000_000, 10)), tried(lambda: file.read(2_999_990, 100)),
             tried(lambda: file.read(0, 0)), tried(lambda: file.read()[1]),
             tried(lambda: file.read("no offset")), tried(lambda: file.read(1, 2, 3, None, 5)),
             tried(lambda: file.read(no_such=1)), tried(lambda: file.read(*range(30))),
             tried(lambda: file.read(0, 10, callback=5)), tried(lambda: closed.read(0, 10)),
             tried(lambda: closed.read(0, 10, callback=print)),
             tried(lambda: file.vector_read([(0, 10), (100, 20)])), tried(lambda: file.vector_read([])),
             tried(lambda: file.vector_read([(0, 10), (2_999_999, 20)])), tried(lambda: file.vector_read("x")),
             tried(lambda: file.vector_read()),
             tried(lambda: missing.open(url + "-missing")), tried(lambda: missing.read(0, 10)),
             tried(lambda: client.FileSystem(url).stat("/a.bin")[0]), tried(lambda: file.stat()[1].size),
             tried(lambda: asked(lambda answer: file.read(0, 1000, callback=answer), 3)),
             tried(lambda: asked(lambda answer: file.read(1_000_000_000, 1, 0, answer))),
             tried(lambda: asked(lambda answer: file.vector_read([(5, 6)], 0, answer))),
             tried(lambda: asked(lambda answer: file.vector_read([(2_999_999, 20)], callback=answer))),
             tried(lambda: asked(lambda answer: missing.open(url + "-missing", callback=answer))),
             tried(lambda: client.File.read.__doc__), client.File.read.__name__, file.is_open(),
             tried(lambda: file.close()), tried(lambda: file.read(0, 10))]
    return [str(each) for each in found]


def outlive(url, folder):
    """Reads, reports that, waits until the server is gone, and continues to read in four ways."""
    files = [opened(url) for _ in range(4)]
    before = [len(file.read(0, 1000)[1]) for file in files]
    open(os.path.join(folder, "read"), "w").close()
    while not os.path.exists(os.path.join(folder, "killed")):
        time.sleep(0.05)
    one, two, three, four = files
    return [before, tried(lambda: one.read(0, 1000, 2)), tried(lambda: one.read(0, 1000, 2)),
            tried(lambda: asked(lambda answer: two.read(0, 1000, 2, answer))),
            tried(lambda: three.vector_read([(0, 10)], 2)),
            tried(lambda: asked(lambda answer: four.vector_read([(0, 10)], 2, answer)))]
