"""Assigns tests to the processes of pytest-xdist, and orders them.

One process runs a whole file, so that its module's fixtures are made once. The files that use the shared cluster are one
portion, so that this cluster is made only once, too. The longest portions start first, so that the processes end together.
"""

import functools
import re
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

HERE = Path(__file__).resolve().parent
SHARED = "the shared cluster"
USES_SHARED = re.compile(r"^def \w+\([^)]*\b(?:shared|demo)\b", re.MULTILINE)

# Half a minute or more of waiting and computing, the longest first. It determines only the order: a file may be missing
# here. Some install packages in the first run: dask_awkward, roastcoffea, pythons.
LONGEST = [SHARED, "test_cause_first", "test_run_state", "test_http", "test_threads", "test_limits", "test_wall",
           "test_dask_awkward", "test_right_run", "test_kill_all", "test_roastcoffea", "test_xrootd", "test_network",
           "test_heap_held", "test_several_collectors", "test_findings", "test_tutorial", "test_kill", "test_recipes",
           "test_lines", "test_one_page", "test_collector_life", "test_progress", "test_executors", "test_agent_strangers", "test_notebook",
           "test_bad_input", "test_compare", "test_pythons", "test_swarm", "test_calibrate", "test_retain", "test_heap",
           "test_big_runs", "test_scripts", "test_silent", "test_suites", "test_sections", "test_page", "test_tls"]

# Last of the shared cluster's: it adds escaped names to all later samples of its workers, which makes reports slower to read.
LAST = {"test_export_bad"}


@functools.cache
def portion(nodeid):
    """The name of a test's portion."""
    file = HERE / Path(nodeid.partition("::")[0]).name
    return SHARED if file.exists() and USES_SHARED.search(file.read_text()) else file.stem


def in_order(items):
    for item in items:
        uses = "shared" in getattr(item, "fixturenames", ())
        assert not uses or portion(item.nodeid) == SHARED, f"{item.nodeid}: its cluster would be made in two processes"
    rank = {name: n for n, name in enumerate(LONGEST)}
    return sorted(items, key=lambda item: (rank.get(portion(item.nodeid), len(rank)), Path(item.nodeid.partition("::")[0]).stem in LAST))


class Portions(LoadScopeScheduling):
    """Portions in the order in which their tests were collected."""

    def __init__(self, config, log=None):
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid):
        return portion(nodeid)
