"""Rows of tests/checklist.txt about roastcoffea's calls, in one measured run of real coffea; each by its number."""

import json
import sys
import time

import cluster
import jobs
import make_data
import pytest
import ttbar
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))
import crema

TRACKED = [{"dataset": "d", "file": "f", "entry_start": 0, "entry_stop": 10, "duration": 0.5}]


class Measured:
    """The collector, coffea's results, and the user's own numbers."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory, homes):
    found, processor = Measured(), ttbar.TTbarProcessor()
    environment = pytest.MonkeyPatch()
    environment.setenv("CREMA_PROGRAM", str(cluster.BUILD / "crema"))
    with cluster.Cluster(tmp_path_factory.mktemp("rows") / "cluster", homes) as procs:
        with jobs.measured(procs) as client:
            found.begin = time.time()
            with crema.MetricsCollector(client, processor_instance=processor, dir=procs.journal) as found.collector:
                found.output, found.report = jobs.run_coffea(client, [make_data.files(ROOT / "data")["zlib"]],
                                                             processor_instance=processor)
            found.end = time.time()
            found.own = {"zlib": {"entries": 200_000, "duration": 1.0, "performance_counters": {"num_requested_bytes": 5}}}
            found.collector.set_coffea_report(found.report, custom_metrics=found.own)
            found.metrics = found.collector.get_metrics()
            yield found
    environment.undo()


def test_row_062():
    collector, output = crema.measure(), {"__roastcoffea_metrics__": list(TRACKED), "sum": 1}
    collector.extract_metrics_from_output(output)
    assert (collector.chunk_metrics, output) == (TRACKED, {"sum": 1})


def test_row_063():
    collector = crema.measure()
    collector.set_chunk_metrics(TRACKED)
    assert collector.chunk_metrics == TRACKED


def test_row_082(measured):
    """The with block has opened a span, which is the run's."""
    assert measured.collector.span_id in measured.collector.run.json["run_info"]["spans"]


def test_row_104(measured):
    collector, metrics = measured.collector, measured.metrics
    assert metrics["wall_time"] == pytest.approx(collector.t_end - collector.t_start, abs=1e-6)
    assert metrics["wall_time_source"] == "client"
    assert 0 < metrics["workers_wall_time"] < metrics["wall_time"]


def test_row_105(measured):
    said = measured.collector.run.json["coffea_report"]
    assert (said["entries"]["coffea"], said["entries"]["agrees"]) == (200_000, True)


def test_row_106(measured):
    assert measured.metrics["custom_metrics"] == measured.own


def test_row_104_executor(measured, tmp_path):
    """(executor, output_dir=): the client is the executor's, and the folder is created below output_dir."""
    from coffea import processor

    client = measured.collector.client
    with crema.MetricsCollector(processor.DaskExecutor(client=client, status=False), output_dir=tmp_path / "benchmarks",
                                dir=measured.collector.dir, track_workers=False) as collector:
        assert client.submit(sum, [1, 2], pure=False).result() == 3
    assert collector.client is client and collector.get_metrics()["num_tasks"] == 1
    assert collector.save_measurement(measurement_name="mine") == tmp_path / "benchmarks" / "mine"
    assert collector.get_metrics()["track_workers"] is False and collector.tracking_data is None
    saved = crema.load_measurement(tmp_path / "benchmarks" / "mine")[0]
    assert saved["track_workers"] is False and saved["tracking_data"] is None
    assert crema.MetricsCollector(processor.IterativeExecutor()).client is None
    with pytest.raises(TypeError, match="output_dir"):
        measured.collector.save_measurement()


def test_records_by_hand():
    collector = crema.MetricsCollector(None)
    collector.record_chunk_metrics(TRACKED[0])
    collector.record_section_metrics({"name": "jets", "duration": 0.5})
    found = {}
    collector._add_own(found)
    assert found["raw_section_metrics"] == [{"name": "jets", "duration": 0.5}] and len(found["raw_chunk_metrics"]) == 1


def test_row_107(measured):
    assert (measured.metrics["total_events"], measured.metrics["num_chunks"]) == (200_000, 4)


def test_row_108(measured, capsys):
    measured.collector.print_summary()
    text = capsys.readouterr().out
    for title in ("Throughput", "Events", "Resources", "Timing: where the time of counted tasks went", "Fine metrics", "Chunks"):
        assert f"\n\n{title}\n" in text
    assert max(map(len, text.splitlines())) <= 80


def test_row_109(measured, tmp_path):
    folder = measured.collector.save_measurement(tmp_path, "mine")
    assert folder == tmp_path / "mine"
    saved = json.loads((folder / "metrics.json").read_text())
    assert (saved["total_events"], saved["num_chunks"]) == (measured.report["entries"], measured.report["chunks"])
    start, stop = map(float, (folder / "start_end_time.txt").read_text().split(","))
    assert measured.begin - 0.001 <= start < stop <= measured.end + 0.001  # the test's clock
    assert stop - start == pytest.approx(measured.collector.t_end - measured.collector.t_start, abs=1e-6)


def test_row_110(measured, tmp_path):
    metrics, start, stop = crema.load_measurement(measured.collector.save_measurement(tmp_path, "mine"))
    assert metrics["total_events"] == 200_000
    assert stop - start == pytest.approx(measured.metrics["wall_time"], abs=1e-3)


def test_row_130(measured):
    collector = crema.measure()
    collector.set_coffea_report((measured.output, measured.report))
    assert collector.coffea_report is measured.report
    assert (measured.report["entries"], measured.report["chunks"]) == (200_000, 4)
