"""What test_http.py runs on workers: clients of HTTP servers, one request after the other."""

import glob
import threading
import time

_kept = {}


def fsspec_gets(urls):
    """fsspec's one loop and session for all tasks of the process: aiohttp with pooled connections."""
    import fsspec

    files = fsspec.filesystem("http")
    return sum(len(files.cat_file(url)) for url in urls)


def requests_gets(urls):
    """A session for each thread."""
    import requests

    me = threading.get_ident()
    if me not in _kept:
        _kept[me] = requests.Session()
    return sum(len(_kept[me].get(url).content) for url in urls)


def client_gets(urls):
    """http.client, a connection for each request."""
    import urllib.request

    total = 0
    for url in urls:
        with urllib.request.urlopen(url, timeout=60) as answer:
            total += len(answer.read())
    return total


def source_reads(urls):
    """uproot's HTTPSource: http.client in threads of its own pool."""
    import uproot

    total = 0
    for url in urls:
        with uproot.open({url: "Events"}, handler=uproot.HTTPSource) as tree:
            total += len(tree["MET_pt"].array(library="np"))
    return total


CLIENTS = {"fsspec": fsspec_gets, "requests": requests_gets, "http.client": client_gets, "HTTPSource": source_reads}


def gets(kind, urls):
    return CLIENTS[kind](urls)


def queued():
    """Seconds that this process's threads were ready to run and had no core."""
    total = 0
    for path in glob.glob("/proc/self/task/*/schedstat"):
        try:
            total += int(open(path).read().split()[1])
        except OSError:
            pass  # has ended
    return total / 1e9


def timed(kind, urls):
    """What all threads together waited for a core meanwhile: on a busy machine that is no network."""
    before = queued()
    gets(kind, urls)
    return queued() - before


def lock_beside(folder, name, others, seconds):
    """Waits for an event that a thread sets, while the other tasks of `folder` run."""
    import test_network

    test_network.wait_for(others, folder, name)
    event = threading.Event()
    threading.Timer(seconds, event.set).start()
    start = time.perf_counter()
    event.wait()
    return time.perf_counter() - start


def timed_beside(kind, urls, folder, name, others):
    import test_network

    test_network.wait_for(others, folder, name)
    return timed(kind, urls)
