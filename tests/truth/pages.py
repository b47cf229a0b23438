"""The pages of RNTuples by uproot's own tables, without crema."""

import contextlib

import awkward as ak
import numpy as np
import uproot
from uproot.models.RNTuple import Model_ROOT_3a3a_RNTuple as RNTuple

EVENTS, CLUSTERS = 3000, 4


def write(path):
    """A file of several clusters, as uproot writes RNTuples; `flag` is not compressed."""
    rng = np.random.default_rng(7)
    with uproot.recreate(path) as file:
        for cluster in range(CLUSTERS):
            counts = rng.integers(0, 5, EVENTS)
            ids = {name: np.arange(EVENTS, dtype=np.uint32) for name in ("run", "luminosityBlock", "event")}
            data = {**ids, "Weight_up": rng.random(EVENTS, dtype=np.float32), "flag": rng.random(EVENTS) > 0.5,
                    "Muon_pt": ak.unflatten(rng.random(counts.sum(), dtype=np.float32), counts),
                    "Jet_pt": ak.unflatten(100 * rng.random(counts.sum(), dtype=np.float32), counts)}
            if cluster:
                ntuple.extend(data)
            else:
                ntuple = file.mkrntuple("Events", data)
    return str(path)


def column_names(ntuple):
    return [ntuple.field_records[c.field_id].field_name for c in ntuple.column_records]


def page_of(ntuple, cluster, column, page):
    """(position, bytes in the file, bytes unpacked) of one page."""
    description = ntuple.page_link_list[cluster][column].pages[page]
    bits = ntuple.column_records[column].nbits
    return (description.locator.offset, description.locator.num_bytes, -(-description.num_elements * bits // 8))


def all_pages(path, fields):
    """Of all clusters of fields that have a column of their own."""
    with uproot.open(path) as file:
        ntuple = file["Events"].ntuple
        columns = [i for i, name in enumerate(column_names(ntuple)) if name in fields]
        return [page_of(ntuple, cluster, column, page) for cluster, links in enumerate(ntuple.page_link_list)
                for column in columns for page in range(len(links[column].pages))]


@contextlib.contextmanager
def logged():
    """The pages that uproot reads in this process meanwhile, in order."""
    original, log = RNTuple.read_page, []

    def read_page(self, destination, cluster, column, page, metadata):
        log.append(page_of(self, cluster, column, page))
        return original(self, destination, cluster, column, page, metadata)

    RNTuple.read_page = read_page
    try:
        yield log
    finally:
        RNTuple.read_page = original


def sums(pages):
    return {"page_calls": len(pages), "basket_calls": len(pages), "basket_bytes": sum(p[1] for p in pages),
            "basket_raw_bytes": sum(p[2] for p in pages)}


def once(pages):
    return sum(size for _, size, _ in set(pages))
