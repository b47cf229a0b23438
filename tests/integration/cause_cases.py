"""Bad analyses with their cause, the same analyses with the advice applied, and healthy ones, for test_cause_first.py.

A case is a function of a Lab that returns when its work is done; a cluster's runs are spans of one client.
"""

import functools
import os
import re
import shutil
import tempfile
import time

import cause_habits as habits
import cause_jobs as work
import cause_more as more
import findings_jobs as simple
import findings_server
import jobs
from distributed import span, wait


class Reports(dict):
    """JSON of each run by its name."""


def table(reports):
    """A table of the predicted gains and of the times measured with the advice applied."""
    lines = ["| bad analysis | first finding | wall time | costs | gain promised | wall time with the advice |", "|---|---|---|---|---|---|"]
    for name, case in CASES.items():
        first = reports[name]["findings"][0]
        then = reports.get(name + ADVISED)
        cost, gain = (f"{v:.1f} s" if v is not None else "unknown" for v in (first["cost_seconds"], first["gain_seconds"]))
        if first["cost_at_least"]:
            cost = f"at least {cost}" if first["cost_seconds"] >= 0.05 else "unknown"
        if (first["gain"] or "").startswith("at most"):
            gain = f"at most {gain}"
        after = f"{then['metrics']['wall_time']:.1f} s" if then else "not tried"
        lines.append(f"| {name.replace('_', ' ')} | `{first['id']}` | {reports[name]['metrics']['wall_time']:.1f} s | {cost} | {gain} | {after} |")
    return "\n".join(lines) + "\n"


class NoAdvice(Exception):
    """A run has no finding with the number that another run needs."""


class Lab:
    """One cluster and the resources of its runs."""

    def __init__(self, procs, client, data, folder, reports):
        self.procs, self.client, self.data, self.folder, self.spans, self.reports = procs, client, data, folder, {}, reports
        self.packages = 0  # packages that imports() has used

    def run(self, name, function):
        self.prefix = re.sub(r"\W+", "_", name)
        with span(name) as self.spans[name]:
            function(self)

    def read(self, names=None):
        """Reads the reports of these runs, of all by default."""
        jobs.settled(self.procs, lambda report: True, run=list(self.spans.values())[-1])
        for name in self.spans if names is None else names:
            self.reports[name] = self.procs.report_json(self.spans[name])

    def run_again(self, runs):
        """Repeats the runs whose first finding is not their cause: if other processes used the cores, waiting for a core was the true cause."""
        self.repeat({name: function for name, function in runs if name in CASES and self.first(name) not in CASES[name][2]})

    def run_healthy_again(self, runs, times=2):
        """Repeats the runs that get a warning: a busy machine that starves the client may leave threads idle, but a false warning persists."""
        for _ in range(times):
            self.repeat({name: function for name, function in runs.items() if any(f["severity"] != "note" for f in self.reports[name]["findings"])})

    def repeat(self, again):
        for name, function in again.items():
            del self.spans[name]  # the repeated run becomes the last in order
            self.run(name, function)
        if again:
            self.read(again)

    def first(self, name):
        found = self.reports[name]["findings"]
        return found[0]["id"] if found else None

    def advised(self, name, what):
        """A number from the run's findings."""
        report = jobs.settled(self.procs, lambda r: r["findings"], run=self.spans[name])
        for finding in report["findings"]:
            for evidence in finding["evidence"]:
                if evidence["name"] == what:
                    return int(evidence["value"])
        raise NoAdvice(f"no finding of {name} has {what}")

    def run_advised(self, name, function, tries=4):
        """Repeats the bad run while it does not advise what this one needs, as other processes used the cores."""
        for left in reversed(range(tries)):
            try:
                return self.run(name, function)
            except NoAdvice:
                if not left:
                    raise
            bad = name.removesuffix(ADVISED)
            del self.spans[bad]
            self.run(bad, CASES[bad][1])

    def coffea(self, instance, chunksize, files=("zstd",), maxchunks=None, retries=0):
        from coffea import processor
        from coffea.nanoevents import NanoAODSchema

        NanoAODSchema.warn_missing_crossrefs = False
        run = processor.Runner(executor=processor.DaskExecutor(client=self.client, status=False, retries=retries), schema=NanoAODSchema,
                               chunksize=chunksize, maxchunks=maxchunks, savemetrics=True, metadata_cache={})
        return run({f"{name}-{i}": {"files": {str(self.data.get(name, name)): "Events"}} for i, name in enumerate(files)}, processor_instance=instance)

    @functools.cached_property
    def lines(self):
        """Lines of a log, the same number in all runs of the lab, that take half a second to sync."""
        return habits.lines_of(self.folder)

    def map(self, function, *lists, **options):
        # A unique prefix: Dask keeps a group of tasks in its first span.
        keys = [jobs.unique(f"{self.prefix}_{function.__name__}") for _ in lists[0]]
        return self.client.gather(self.client.map(function, *lists, key=keys, pure=False, **options))


def server(lab, pause):
    """A web server that serves the file and waits before each answer."""
    one = findings_server.start([lab.data["zstd"]], pause)
    return "http://{}:{}/{}".format(*one.server_address, os.path.basename(lab.data["zstd"]))


def copy(lab, name):
    path = os.path.join(lab.folder, name)
    if not os.path.exists(path):
        shutil.copy(lab.data["zstd"], path)
    return path


def serial(lab):
    for _ in range(10):
        lab.map(work.compute, [0.3])


def held(lab, numbers):
    """Results that stay on the worker until all of them are complete; none is left for the next run."""
    prefix = f"{lab.prefix}_noise"
    made = lab.client.map(work.noise, [numbers] * 20, key=[jobs.unique(prefix) for _ in range(20)], pure=False)
    wait(made)
    del made
    while any(lab.client.run(lambda dask_worker: len(dask_worker.data)).values()):
        time.sleep(0.1)


def many_files(lab):
    paths = [copy(lab, f"many{i}.root") for i in range(2)]
    for i in range(2, 40):
        paths.append(os.path.join(lab.folder, f"many{i}.root"))
        if not os.path.exists(paths[-1]):
            os.link(paths[0], paths[-1])
    lab.coffea(work.Sum(), 500_000, paths)


def table_path(lab):
    return habits.json_table(os.path.join(lab.folder, "corrections.json"), 45_000)


def imports(lab, more):
    """Each further call needs a package that the workers do not have yet."""
    lab.packages += more
    lab.map(work.import_slowly, [lab.folder] * 6, [lab.packages] * 6)


JETS = ("Jet", "Muon")
ADVISED = ", advice tried"

# name: (cluster, bad, its cause, the cluster for the same with the advice applied, that function, the advice)
CASES = {
    "small_chunks": ("pair", lambda lab: lab.coffea(work.Sum(), 4000), {"chunk_overhead"},
                     "pair", lambda lab: lab.coffea(work.Sum(), lab.advised("small_chunks", "chunksize")), "chunksize="),
    "lzma": ("pair", lambda lab: lab.coffea(work.Columns(*JETS), 100_000, ("lzma",) * 2), {"decompression"},
             "pair", lambda lab: lab.coffea(work.Columns(*JETS), 100_000, ("zstd",) * 2), "ZSTD"),
    "gil": ("threads", lambda lab: lab.map(simple.loop, [2_000_000] * 12), {"gil_wait"},
            "pair", lambda lab: lab.map(simple.loop, [2_000_000] * 12), "--nthreads 1"),
    "straggler": ("pair", lambda lab: lab.coffea(work.OneSlow(2.3, 0.02), 16_000), {"stragglers"},
                  "pair", lambda lab: lab.coffea(work.OneSlow(0.02, 0.02), 16_000), "chunk"),
    "leak": ("pair", lambda lab: lab.coffea(work.Leaks(32 << 20), 10_000), {"memory_growth", "memory_limit"}, "pair", None, "memory"),
    "opens_again": ("pair", lambda lab: lab.coffea(work.OpensAgain(4), 50_000), {"reread_in_task"},
                    "pair", lambda lab: lab.coffea(work.OpensAgain(4, once=True), 50_000), "once"),
    "slow_server": ("pair", lambda lab: lab.coffea(work.Columns("Jet"), 100_000, (server(lab, 0.15),)), {"preload_columns"},
                    "pair", lambda lab: lab.coffea(work.Columns("Jet"), 100_000, ("zstd",)), "preload"),
    "python_loop": ("pair", lambda lab: lab.coffea(work.PythonLoop(), 2000, maxchunks=4), {"python_heavy"},
                    "pair", lambda lab: lab.coffea(work.PythonLoop(arrays=True), 2000, maxchunks=4), "array"),
    "tiny_tasks": ("pair", lambda lab: lab.map(work.nothing, range(500)), {"tiny_tasks"},
                   "pair", lambda lab: lab.map(work.batch, range(0, 500, 50), [50] * 10), "batch"),
    "slow_merge": ("pair", lambda lab: lab.coffea(work.BigOutput(300_000), 20_000), {"dask_overhead"},
                   "pair", lambda lab: lab.coffea(work.BigOutput(0), 20_000), "smaller outputs"),
    "few_chunks": ("pair", lambda lab: lab.coffea(work.OneSlow(2.0, 2.0), 200_000), {"few_chunks"},
                   "pair", lambda lab: lab.coffea(work.OneSlow(0.2, 0.2), 20_000), "chunksize=20_000"),
    "crowded": ("pair", lambda lab: lab.map(work.spin_threads, [0.3] * 8, [8] * 8), {"run_queue"},
                "pair", lambda lab: lab.map(work.compute, [0.3] * 8), "threads"),
    "imports": ("pair", lambda lab: imports(lab, 1), {"imports"}, "pair", lambda lab: imports(lab, 0), "preload"),
    "compression": ("pair", lambda lab: lab.coffea(work.Packs("lzma"), 25_000), {"compression"},
                    "pair", lambda lab: lab.coffea(work.Packs("zlib"), 25_000), "level"),
    "lock": ("threads", lambda lab: lab.map(simple.hold_lock, [0.2] * 18), {"lock_wait"},
             "threads", lambda lab: lab.map(simple.hold_lock, [0.2] * 18, [False] * 18), "lock"),
    "spills": ("spilling", lambda lab: held(lab, 60_000_000), {"spill"}, "spilling", lambda lab: held(lab, 1000), "smaller results"),
    "polling": ("pair", lambda lab: lab.map(work.poll, ["x"] * 6), {"sleeping"}, "pair", None, "sleep"),
    "reads_beside": ("pair", lambda lab: lab.coffea(work.ReadsBeside(1), 50_000), {"not_by_coffea"},
                     "pair", lambda lab: lab.coffea(work.ReadsBeside(0), 50_000), "open"),
    "retries": ("pair", lambda lab: lab.coffea(work.Fails(tempfile.mkdtemp(dir=lab.folder)), 100_000, retries=3), {"retried_work"},
                "pair", lambda lab: lab.coffea(work.Fails(""), 100_000), "error"),
    "direct_io": ("pair", lambda lab: lab.map(work.around_the_cache, [copy(lab, "direct")] * 4, [0.8] * 4), {"storage_wait"}, "pair", None, "storage"),
    "serial_client": ("pair", serial, {"idle_threads"}, "pair", lambda lab: lab.map(work.compute, [0.3] * 10), "together"),
    "prints": ("pair", lambda lab: lab.coffea(habits.Prints(), 20_000, maxchunks=4), {"small_writes"},
               "pair", lambda lab: lab.coffea(habits.Prints(5000), 20_000, maxchunks=4), "print"),
    "corrections": ("pair", lambda lab: lab.coffea(habits.LoadsEachTime(table_path(lab)), 20_000), {"not_by_coffea"},
                    "pair", lambda lab: lab.coffea(habits.LoadsEachTime(table_path(lab), once=True), 20_000), "corrections.json' once per worker"),
    "programs": ("pair", lambda lab: lab.coffea(habits.Subprocess(0.3), 20_000), {"lock_wait"},
                 "pair", lambda lab: lab.coffea(habits.Subprocess(0), 20_000), "programs"),
    "slow_worker": ("pair", lambda lab: lab.map(habits.on_worker, [0.1] * 20, [6] * 20), {"slow_worker", "stragglers"},
                    "pair", lambda lab: lab.map(habits.on_worker, [0.1] * 20, [1] * 20), "node"),
    "last_is_longest": ("pair", lambda lab: lab.map(work.compute, [0.1] * 8 + [2.8]), {"tail"},
                        "pair", lambda lab: lab.map(work.compute, [0.1] * 8 + [0.28] * 10), "smaller"),
    "all_columns": ("pair", lambda lab: lab.coffea(habits.AllColumns(), 100_000), {"wide_read"},
                    "pair", lambda lab: lab.coffea(work.Sum(), 100_000), "columns"),
    "preprocessing": ("pair", many_files, {"dask_overhead"}, "pair", None, "'preprocess'"),
    "large_processor": ("pair", lambda lab: lab.coffea(habits.Table(25), 50_000), {"chunk_baggage"},
                        "pair", lambda lab: lab.coffea(habits.Table(0), 50_000), "processor"),
    "small_reads": ("pair", lambda lab: lab.map(work.small_reads, [copy(lab, "small")] * 8, [100_000] * 8, [64] * 8), {"small_reads"},
                    "pair", lambda lab: lab.map(work.small_reads, [copy(lab, "small")] * 8, [10] * 8, [640_000] * 8), "larger"),
    "large_arguments": ("pair", more.large_arguments, {"large_arguments"},
                        "pair", lambda lab: more.large_arguments(lab, each=False), "scatter("),
    "closures": ("pair", more.closures, {"large_arguments"}, "pair", None, "functions and lambdas"),
    "collects": ("pair", lambda lab: lab.coffea(more.Collects(8), 50_000), {"gc_pauses"},
                 "pair", lambda lab: lab.coffea(more.Collects(0), 50_000), "gc.collect()"),
    "scratch": ("pair", lambda lab: lab.coffea(more.Scratch(lab.folder, 30), 20_000), {"not_by_coffea"},
                "pair", lambda lab: lab.coffea(more.Scratch(lab.folder, 0), 20_000), "temporary files"),
    "huge_histogram": ("pair", lambda lab: lab.coffea(more.Histogram(100_000), 20_000), {"dask_overhead"},
                       "pair", lambda lab: lab.coffea(more.Histogram(100), 20_000), "smaller outputs"),
    "lists": ("pair", lambda lab: lab.coffea(more.Lists(True), 50_000), {"hot_line", "python_heavy"},
              "pair", lambda lab: lab.coffea(more.Lists(False), 50_000), "array"),
    "imports_again": ("pair", lambda lab: lab.coffea(more.ImportsAgain(True), 25_000), {"hot_line"},
                      "pair", lambda lab: lab.coffea(more.ImportsAgain(False), 25_000), "at the top of your module"),
    "dask_lock": ("pair", lambda lab: lab.coffea(more.Locks(0.8), 20_000), {"lock_wait"},
                  "pair", lambda lab: lab.coffea(more.Locks(0.8, False), 20_000), "distributed.Lock"),
    "gathers": ("pair", lambda lab: lab.map(work.noise, [25_000_000] * 16), {"large_results"},
                "pair", lambda lab: lab.map(work.noise, [1000] * 16), "merge there"),
    "syncs": ("pair", lambda lab: lab.coffea(habits.Logs(lab.folder, lab.lines), 20_000), {"small_writes", "storage_wait"},
              "pair", lambda lab: lab.coffea(habits.Logs(lab.folder, lab.lines, True), 20_000), "sync"),
    "appends": ("pair", lambda lab: lab.coffea(habits.Appends(), 33_000, maxchunks=3), {"hot_line"},
                "pair", lambda lab: lab.coffea(habits.Appends(True), 33_000, maxchunks=3), "np.append"),
    "iterates_over_all": ("pair", lambda lab: more.iterated(lab, True), {"baskets_reread"},
                          "pair", lambda lab: more.iterated(lab, False), "entry_start"),
}

# Cells for CREMA_ALL_CELLS only: cases with the same finding and advice as another case, and advice that computes as much as it saves.
SAME_FINDING = {"corrections", "huge_histogram", "lists", "appends"}
SAME_COST = {"few_chunks", "crowded", "serial_client", "slow_worker", "last_is_longest", "lzma"}
# For CREMA_FURTHER_CELLS, too: the finding is another case's, as is the advice of "closures" (large_arguments), or an everyday run saves seconds of CPU.
FURTHER = {"closures", "preprocessing", "syncs", "scratch", "programs", "dask_lock",
           "large_arguments", "slow_merge", "compression", "spills", "last_is_longest", "slow_worker", "serial_client", "gathers", "leak", "imports_again"}


def tried(everything, further):
    """The cases for this test run, without the advice that this run does not try."""
    if everything:
        return CASES
    left_out = SAME_FINDING if further else SAME_FINDING | FURTHER
    once = {name: case for name, case in CASES.items() if name not in left_out}
    missing = set.union(*(case[2] for case in CASES.values())) - set.union(*(case[2] for case in once.values()))
    assert not further or not missing - {"hot_line"}, missing  # the other finding of "lists"
    return {name: (*case[:3], None, None, case[5]) if name in SAME_COST else case for name, case in once.items()}


# First what computes outside tasks, then short ones: CPU outside tasks up to a second before a run counts for it.
HEALTHY = {
    "skim": ("pair", more.skim),
    "histogram": ("pair", lambda lab: lab.coffea(more.Histogram(100), 50_000)),
    "correctionlib": ("pair", lambda lab: lab.coffea(more.Corrections(more.correction_file(lab)), 50_000)),
    "few_columns": ("pair", lambda lab: lab.coffea(work.Columns("Muon"), 100_000, ("zlib", "lz4"))),
    "reduction": ("pair", lambda lab: lab.map(work.size_of, lab.client.map(work.arrays, [200_000] * 12, pure=False))),
    "ttbar": ("pair", lambda lab: ttbar(lab, 50_000, ("zstd",))),
    "ttbar_two": ("pair", lambda lab: ttbar(lab, 100_000, ("zstd", "zlib"))),
    "jets": ("pair", lambda lab: lab.coffea(work.Columns("Jet"), 100_000, ("zlib",))),
    "numbers": ("pair", lambda lab: lab.map(work.compute, [0.2] * 8)),
}


def ttbar(lab, chunksize, files):
    import ttbar

    lab.coffea(ttbar.TTbarProcessor(), chunksize, files)
