"""The pages of RNTuples according to uproot's own tables, without crema."""

import contextlib

import awkward as ak
import numpy as np
import uproot
import uproot.writing._cascadentuple as cascade
from uproot.models.RNTuple import Model_ROOT_3a3a_RNTuple as RNTuple

EVENTS, CLUSTERS = 3000, 4


@contextlib.contextmanager
def several_pages(pieces):
    """uproot writes one page for each column of a cluster: here each becomes several, compressed separately and written in sequence."""
    compress, column, cut = uproot.compression.compress, cascade.NTuple_ColumnPageListDescription, []

    def compress_pieces(data, compression):
        size = max(8, -(-len(data) // pieces // 8) * 8)
        parts = [data[i:i + size] for i in range(0, len(data), size)]
        packed = [compress(part, compression) for part in parts]
        cut[:] = [(len(part), len(p)) for part, p in zip(parts, packed)]
        return b"".join(packed)

    def column_of_pieces(pages, count, compression):
        if pages:
            (page,) = pages
            raw_bytes, at, links = sum(raw for raw, _ in cut), page.locator.offset, []
            left = page.num_entries
            for raw, stored in cut:
                elements = min(left, raw * 8 if raw_bytes * 8 - page.num_entries < 8 else raw * page.num_entries // raw_bytes)
                links.append(cascade.NTuple_PageDescription(elements, cascade.NTuple_Locator(stored, at)))
                at, left = at + stored, left - elements
            assert not left
            pages = links
        return column(pages, count, compression)

    uproot.compression.compress, cascade.NTuple_ColumnPageListDescription = compress_pieces, column_of_pieces
    try:
        yield
    finally:
        uproot.compression.compress, cascade.NTuple_ColumnPageListDescription = compress, column


def write(path, pieces=None):
    """A file with several clusters, as uproot writes RNTuples, or with `pieces` pages for each column of a cluster; `flag` is not
    compressed."""
    with several_pages(pieces) if pieces else contextlib.nullcontext():
        return write_clusters(path)


def write_clusters(path):
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
    """(position, bytes in the file, decompressed bytes) of one page."""
    description = ntuple.page_link_list[cluster][column].pages[page]
    bits = ntuple.column_records[column].nbits
    return (description.locator.offset, description.locator.num_bytes, -(-description.num_elements * bits // 8))


def all_pages(path, fields):
    """The pages of all clusters, for fields with a column."""
    with uproot.open(path) as file:
        ntuple = file["Events"].ntuple
        columns = [i for i, name in enumerate(column_names(ntuple)) if name in fields]
        return [page_of(ntuple, cluster, column, page) for cluster, links in enumerate(ntuple.page_link_list)
                for column in columns for page in range(len(links[column].pages))]


@contextlib.contextmanager
def logged():
    """The pages that uproot reads in this process inside the block, in order."""
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
