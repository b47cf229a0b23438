"""KvikIO and nvCOMP themselves, as far as they go without a GPU: they are named, and the worker's own reads stay exact."""

import os

import codec_packages
import jobs
import pytest
from distributed import Client

pytestmark = pytest.mark.further


def test_clients_of_gpus_are_named(new_cluster, data):
    procs = new_cluster()
    folder = codec_packages.folder("gpu-packages")
    procs.env["PYTHONPATH"] = os.pathsep.join([procs.env["PYTHONPATH"], str(folder)])
    procs.env["LD_LIBRARY_PATH"] = str(folder / "nvidia" / "cufile" / "lib")
    procs.start_collector()
    procs.start_scheduler()
    procs.start_worker()
    with Client(procs.address) as client:
        client.wait_for_workers(1, timeout=60)
        n, (before,) = jobs.submit(procs, client, "before", jobs.read_whole, data["zstd"])
        client.run(exec, "import kvikio, nvidia.nvcomp")
        n, (after,) = jobs.submit(procs, client, "after", jobs.read_whole, data["zstd"])
    assert before["read_bytes"] == after["read_bytes"] == n == os.path.getsize(data["zstd"])
    assert before["decompress_out_bytes"] == 0 and after["decompress_out_bytes"] is None
    notes = procs.report_json()["completeness"]["notes"]
    for library in ("cuFile is loaded (KvikIO uses it)", "nvCOMP is loaded"):
        assert sum(library in note for note in notes) == 1, notes
    assert not any("CUDA is loaded" in note for note in notes)
