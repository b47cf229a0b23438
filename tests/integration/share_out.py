"""Assigns tests to the processes of pytest-xdist, and orders them.

One process runs a whole file, so that its module's fixtures are made once. The files that use the shared cluster form three
portions: each has this cluster once, and waits for reports of a journal that has only its own runs. They come first, so that their
clusters can end after them (an idle one takes 7 % of a core). Of the other portions the longest start first, so that the processes end together.
"""

import functools
import re
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

HERE = Path(__file__).resolve().parent
FORMATS, READS, DEMO = SHARED = ("a shared cluster, file formats", "a shared cluster, reads", "a shared cluster, the demo")
USES_SHARED = re.compile(r"^def \w+\([^)]*\b(?:shared|demo)\b", re.MULTILINE)
USES_DEMO = re.compile(r"^def \w+\([^)]*\bdemo\b", re.MULTILINE)
OF_FORMATS = {"test_parquet", "test_rntuple", "test_ways_to_read", "test_tree_reads", "test_sources", "test_codecs"}

# A quarter of a minute or more, the longest first, but what mostly waits (test_http, test_run_line, test_wall ...) beside what mostly
# computes: otherwise the first half of a run has more work than the cores can do, and the second leaves a third of them idle. It
# determines only the order: a file may be missing here. Some install packages in the first run: dask_awkward, roastcoffea, pythons.
LONGEST = [FORMATS, READS, DEMO, "test_cause_first", "test_run_state", "test_http", "test_run_line", "test_findings", "test_wall", "test_dask_awkward",
           "test_limits", "test_threads", "test_roastcoffea", "test_package", "test_tutorial", "test_one_page", "test_kill_all", "test_xrootd",
           "test_right_run", "test_network", "test_compare", "test_collector_life", "test_heap_held", "test_executors", "test_several_collectors",
           "test_wait_stacks", "test_kill", "test_page", "test_agent_strangers", "test_calibrate", "test_retain", "test_big_runs", "test_lines",
           "test_many_runs_parquet", "test_notebook", "test_recipes", "test_progress", "test_long_journals", "test_swarm", "test_scripts", "test_heap",
           "test_holder", "test_casa", "test_hangs", "test_bad_input", "test_pythons", "test_silent", "test_suites", "test_sections", "test_tls",
           "test_live", "test_code_names", "test_timeline", "test_programs", "test_libraries", "test_page_charts", "test_to_parquet", "test_top"]

# Last of its cluster's: it adds escaped names to all later samples of its workers, which makes reports slower to read.
LAST = {"test_export_bad"}


@functools.cache
def portion(nodeid):
    """The name of a test's portion."""
    file = HERE / Path(nodeid.partition("::")[0]).name
    text = file.read_text() if file.exists() else ""
    if not USES_SHARED.search(text):
        return file.stem
    return DEMO if USES_DEMO.search(text) else FORMATS if file.stem in OF_FORMATS else READS


def uses_shared(item):
    return portion(item.nodeid) in SHARED


def in_order(items):
    for item in items:
        uses = "shared" in getattr(item, "fixturenames", ())
        assert not uses or uses_shared(item), f"{item.nodeid}: its cluster would be made in one more process"
    rank = {name: n for n, name in enumerate(LONGEST)}
    return sorted(items, key=lambda item: (rank.get(portion(item.nodeid), len(rank)), Path(item.nodeid.partition("::")[0]).stem in LAST))


class Portions(LoadScopeScheduling):
    """Portions in the order in which their tests were collected."""

    def __init__(self, config, log=None):
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid):
        return portion(nodeid)
