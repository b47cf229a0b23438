"""The baskets of a file by its own metadata, read with uproot alone."""

import functools
import os

import uproot


@functools.cache
class Baskets:
    """The baskets of one tree of a local file; each file is opened once."""

    def __init__(self, path, tree="Events"):
        self.tree = uproot.open(f"{os.path.realpath(path)}:{tree}")

    def of(self, branch, start, stop):
        """[(position, bytes with key, decompressed bytes with key)] of the baskets with entries in [start, stop)."""
        found = self.tree[branch]
        free = found.num_baskets - len(found.embedded_baskets)
        edges = found.entry_offsets
        return [self.one(found, i) for i in range(free) if edges[i] < stop and edges[i + 1] > start]

    def one(self, branch, i):
        return (int(branch.member("fBasketSeek")[i]), int(branch.member("fBasketBytes")[i]),
                int(branch.basket_uncompressed_bytes(i)))

    def of_chunk(self, chunk):
        """The baskets of all columns that the chunk read according to coffea: "Jet_pt-data", "nJet-offsets"."""
        branches = sorted({column.rpartition("-")[0] for column in chunk["columns"]})
        return [basket for branch in branches
                for basket in self.of(branch, chunk["entrystart"], chunk["entrystop"])]
