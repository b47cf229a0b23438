# SPDX-License-Identifier: BSD-3-Clause
"""`crema doctor --calibrate` on file systems that are proven, provable and wrong; and how workers apply its verdicts:
a task's bytes against what the loop device read."""

import contextlib
import json
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import bindfs
import cluster
import cold
import jobs
import pytest
from accuracy import not_tried

MB = 1 << 20
TOOLS = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
FORMAT = {"ext4": "mkfs.ext4 -q -F", "ext2": "mkfs.ext2 -q -F", "xfs": "mkfs.xfs -q -f", "btrfs": "mkfs.btrfs -q -f"}
DEVICE = "what the loop device read (/sys/block)"


def run(command):
    done = subprocess.run(command, shell=True, env=TOOLS, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{command}: {done.stderr.strip().splitlines()[-1:]}")


@contextlib.contextmanager
def mounted(image, point, options="loop"):
    """Mounts the image at point; skips the test if this machine does not allow loop devices."""
    point.mkdir(exist_ok=True)
    if subprocess.run(["mount", "-o", options, image, point], env=TOOLS, capture_output=True).returncode:
        pytest.skip("no loop devices of our own on this machine")
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=True)


@pytest.fixture(scope="module")
def place(disk, tmp_path_factory):
    """A folder on a real disk with files of incompressible bytes and of text."""
    folder = disk / "calibrate"
    (folder / "files").mkdir(parents=True)
    (folder / "files" / "big").write_bytes(random.Random(1).randbytes(12 * MB))
    lines = random.Random(2)
    (folder / "files" / "text").write_text("".join(f"event {i} {lines.random():.3f}\n" for i in range(600_000)))
    return folder


def image(place, kind, size="400M"):
    """An empty file system, or one packed from the files: that is the same each time."""
    path = place / kind
    if path.exists() and kind not in FORMAT:
        return path
    path.unlink(missing_ok=True)
    if kind in FORMAT:
        run(f"truncate -s {size} {path} && {FORMAT[kind]} {path}")
    elif kind == "squashfs":
        run(f"mksquashfs {place}/files {path} -quiet -no-progress")
    elif kind == "erofs-lz4":
        run(f"mkfs.erofs -zlz4 {path} {place}/files")
    else:
        run(f"mkfs.erofs {path} {place}/files")
    return path


def calibrate(path, state, code=0, options=()):
    """Its lines, and the last one separately: the verdict, or the reason why there is none."""
    env = {**TOOLS, "XDG_STATE_HOME": str(state)}
    done = subprocess.run([cluster.BUILD / "crema", "doctor", "--json", "--calibrate", path, *options], env=env,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout
    lines = json.loads(done.stdout)["lines"]
    assert all(line["about"] == "calibration" for line in lines)
    return lines[:-1], lines[-1]


def verdicts(state):
    path = state / "crema" / "calibration"
    return [line.split() for line in path.read_text().splitlines()[1:-1]] if path.exists() else []


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "squashfs", "erofs", "ext2"])
def test_charges_that_are_right(place, tmp_path, kind):
    with mounted(image(place, kind), tmp_path / "point") as point:
        ways, verdict = calibrate(point if kind in FORMAT else point / "big", tmp_path)
        assert not list(point.glob(".crema*"))
    assert len(ways) == 11 and {line["level"] for line in ways} == {"ok"}, ways
    assert verdict["level"] == "ok" and verdict["text"].startswith(f"{kind} on Linux {platform.release()} with ")
    ((right, what, kernel, _, _, charged, needed, way),) = verdicts(tmp_path)
    assert (right, what, kernel, way) == ("right", kind, platform.release(), "all")
    assert charged == needed and int(charged) > (200 if kind in FORMAT else 10) * MB
    assert ("exact" if kind in FORMAT else 'known ("calibrated")') in verdict["advice"]


def test_overlay_is_as_its_layers(place, tmp_path):
    """Writes go to the upper layer: the verdict is printed, but not kept."""
    for name in ("lower", "upper", "work", "point"):
        (place / name).mkdir()
    try:
        run(f"mount -t overlay overlay -o lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work {place}/point")
    except OSError:
        pytest.skip("no loop devices of our own on this machine")
    try:
        ways, verdict = calibrate(place / "point", tmp_path)
    finally:
        run(f"umount {place}/point")
    assert {line["level"] for line in ways} == {"ok"}
    assert verdict["level"] == "warn" and "its layers decide" in verdict["text"]
    assert verdicts(tmp_path) == []


def test_fuse_is_charged_to_its_server(place, tmp_path):
    """bindfs does all the reading, and the thread that reads is charged nothing."""
    point = tmp_path / "point"
    point.mkdir()
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(bindfs.mounted(place / "files", point))
        except OSError:
            pytest.skip("no loop devices of our own on this machine")
        ways, verdict = calibrate(point, tmp_path, code=1)
        # FUSE hides a removed file until its server has learned that nobody has it open any more.
        cluster.wait_until(lambda: not list((place / "files").glob(".*")), "no file left behind")
    assert [line["level"] for line in ways] == ["bad"] * 10 + ["ok"]
    assert "charged 0 of 64 MiB (small reads)" in verdict["text"] and "are unknown there" in verdict["advice"]
    ((right, what, *_),) = verdicts(tmp_path)
    assert (right, what) == ("wrong", "fuse")


def test_what_cannot_be_calibrated(place, tmp_path):
    def refused(path):
        lines, last = calibrate(path, tmp_path, code=1)
        assert not lines and last["level"] == "bad" and "\n" not in last["text"]
        return last["text"]

    assert "is on tmpfs: nothing there comes from storage" in refused("/dev/shm")
    assert "is smaller than 8 MiB" in refused(__file__)
    assert "no such file or directory" in refused(place / "none")
    (place / "hollow").touch()
    os.truncate(place / "hollow", 10 * MB)
    assert "has holes" in refused(place / "hollow")
    with mounted(image(place, "ext4", "18M"), tmp_path / "point") as point:
        assert "MiB are free" in refused(point) and "needs 16" in refused(point)
        assert [p.name for p in point.iterdir()] == ["lost+found"]
    assert verdicts(tmp_path) == []


def test_the_data_directory_that_is_named(place, tmp_path):
    with mounted(image(place, "squashfs"), tmp_path / "point") as point:
        calibrate(point / "big", tmp_path, options=("--dir", tmp_path / "named"))
    assert (tmp_path / "named" / "calibration").exists() and verdicts(tmp_path) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_behind_whatever_ends_it(place, tmp_path, how):
    folder = place / f"ended-{how.name}"
    folder.mkdir()
    env = {**TOOLS, "XDG_STATE_HOME": str(tmp_path)}
    doctor = subprocess.Popen([cluster.BUILD / "crema", "doctor", "--calibrate", folder], env=env, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE)
    assert b"writing a file of 64 MiB" in doctor.stderr.readline()
    doctor.send_signal(how)
    assert doctor.wait(60) == -how
    assert os.listdir(folder) == [] and verdicts(tmp_path) == []


# --- workers

def device_of(path):
    device = os.stat(path).st_dev
    return lambda: int(Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text().split()[2]) * 512


def read_cold(procs, client, path, name):
    """The task, and what the file's device read in the meantime."""
    cold.drop(str(path))
    read, before = device_of(path), device_of(path)()
    _, (task,) = jobs.submit(procs, client, name, jobs.read_whole, str(path))
    return task, read() - before


def test_workers_know_what_was_calibrated(place, tmp_path, new_cluster, cell):
    """Exact for the type, kernel and options of a right verdict; unknown with other options, and after a wrong verdict."""
    erofs, squashfs = image(place, "erofs-lz4"), image(place, "squashfs")
    name = "a cold file on {}, calibrated"
    with contextlib.ExitStack() as stack:
        packed = stack.enter_context(mounted(erofs, tmp_path / "erofs"))
        plain = stack.enter_context(mounted(squashfs, tmp_path / "squashfs"))
        calibrate(packed / "big", tmp_path)
        calibrate(plain / "big", tmp_path)
        through = tmp_path / "fuse"
        through.mkdir()
        with contextlib.suppress(OSError):
            stack.enter_context(bindfs.mounted(place / "files", through, "-o", "subtype=eosxd,fsname=eosuser"))  # as EOS is mounted
            calibrate(through, tmp_path, code=1)
        procs = new_cluster(env={"CREMA_CALIBRATION": str(tmp_path / "crema" / "calibration")})
        client = stack.enter_context(jobs.measured(procs))
        task, device = read_cold(procs, client, packed / "text", "erofs")
        assert 0 < device < os.path.getsize(packed / "text") / 2
        cell("storage_read_bytes", name.format("erofs (lz4)"), DEVICE, device, task["storage_read_bytes"])
        task, device = read_cold(procs, client, plain / "text", "squashfs")
        assert 0 < device < os.path.getsize(plain / "text") / 2
        cell("storage_read_bytes", name.format("squashfs (gzip)"), DEVICE, device, task["storage_read_bytes"])
        # The same image on the same device with other options, which agents check once per second.
        subprocess.run(["umount", plain], check=True)
        again = ["mount", "-o", "loop,errors=panic", squashfs, plain]  # the loop device may take a moment to become free
        cluster.wait_until(lambda: subprocess.run(again, env=TOOLS).returncode == 0, "the image's second mount", 20)
        time.sleep(3)
        task, device = read_cold(procs, client, plain / "text", "options")
        assert device > 0 and task["storage_read_bytes"] is None and task["storage_unknown_filesystem"] == "squashfs"
        if os.path.ismount(through):
            _, (task,) = jobs.submit(procs, client, "fuse", jobs.read_whole, str(through / "big"))
            assert task["storage_read_bytes"] is None and task["storage_unknown_filesystem"] == "fuse.eosxd"
        else:
            not_tried("storage_read_bytes", name.format("FUSE"), "no FUSE here")
        report, text = procs.report_json(), procs.report().stdout
    worker, = report["workers"]
    kinds = {f["type"]: (f["storage"], f["calibration"]) for f in worker["filesystems"]}
    assert kinds["erofs"][0] == "calibrated" and kinds["erofs"][1].endswith("(all)")
    assert re.search(r"erofs: storage bytes are calibrated: charged [\d.]+ of [\d.]+ MiB \(all\)", text)
    if "fuse.eosxd" in kinds:
        assert kinds["fuse.eosxd"] == ("unknown", "charged 0 of 64 MiB (small reads)")
        assert "fuse.eosxd: storage bytes are unknown: charged 0 of 64 MiB" in text


def storage_of(procs, kind):
    """What the last run's worker and files say about that type's storage bytes."""
    report = procs.report_json()
    rows = [f for w in report["workers"] for f in w["filesystems"] if f["type"] == kind]
    return {f["storage"] for f in rows + [f for f in report["files"] if f["filesystem"] == kind]}


def test_the_collector_sends_verdicts_to_the_workers(place, tmp_path, new_cluster):
    """Workers with another home than the collector's know what was calibrated: from their start, and from when the file arrives."""
    erofs, squashfs = image(place, "erofs-lz4"), image(place, "squashfs")
    with contextlib.ExitStack() as stack:
        packed = stack.enter_context(mounted(erofs, tmp_path / "erofs"))
        plain = stack.enter_context(mounted(squashfs, tmp_path / "squashfs"))
        procs = new_cluster(env={"XDG_STATE_HOME": str(tmp_path / "elsewhere")})
        calibrate(packed / "big", tmp_path, options=("--dir", procs.journal))
        client = stack.enter_context(jobs.measured(procs))
        task, device = read_cold(procs, client, packed / "text", "erofs")
        assert 0 < device == task["storage_read_bytes"] < os.path.getsize(packed / "text") / 2
        task, _ = read_cold(procs, client, plain / "text", "early")
        assert task["storage_read_bytes"] is None and task["storage_unknown_filesystem"] == "squashfs"
        # Another verdict, of another node, copied: the worker has read there, and is not restarted.
        calibrate(plain / "big", tmp_path)
        shutil.copy(tmp_path / "crema" / "calibration", procs.journal / "calibration")
        cluster.wait_until(lambda: storage_of(procs, "squashfs") == {"calibrated"}, "the verdict on the worker and its files", 30)
        task, device = read_cold(procs, client, plain / "text", "late")
        assert 0 < device == task["storage_read_bytes"] < os.path.getsize(plain / "text") / 2
        report, text = procs.report_json(), procs.report().stdout
    kinds = {f["type"]: (f["storage"], f["calibration"]) for f in report["workers"][0]["filesystems"]}
    # The second file replaced the first; nothing read from erofs is counted as calibrated any more.
    assert kinds["squashfs"][0] == "calibrated" and kinds["squashfs"][1].endswith("(all)") and kinds["erofs"] == ("unknown", None)
    assert re.search(r"squashfs: storage bytes are calibrated: charged [\d.]+ of [\d.]+ MiB \(all\)", text)
    assert not (tmp_path / "elsewhere" / "crema" / "calibration").exists()


def test_what_is_damaged_is_ignored_with_one_line(place, tmp_path, new_cluster):
    """A worker's own damaged file does not keep it from using the collector's, here that of CREMA_CALIBRATION; one that is damaged later
    changes nothing."""
    squashfs, state = image(place, "squashfs"), tmp_path / "elsewhere"
    with contextlib.ExitStack() as stack:
        plain = stack.enter_context(mounted(squashfs, tmp_path / "squashfs"))
        calibrate(plain / "big", tmp_path)
        good = (tmp_path / "crema" / "calibration").read_bytes()
        shared = tmp_path / "shared"
        procs = new_cluster(env={"XDG_STATE_HOME": str(state), "CREMA_CALIBRATION": str(shared)})
        (state / "crema").mkdir(parents=True, mode=0o700)
        (state / "crema" / "calibration").write_bytes(good[:-1])
        shared.write_bytes(good)
        client = stack.enter_context(jobs.measured(procs, env={"CREMA_CALIBRATION": ""}))
        task, device = read_cold(procs, client, plain / "text", "before")
        assert 0 < device == task["storage_read_bytes"]
        shared.write_bytes(good.replace(b"right", b"wrong"))
        cluster.wait_until(lambda: "is ignored" in procs.collector.text(), "the collector's line", 30)
        time.sleep(3)
        task, device = read_cold(procs, client, plain / "text", "after")
        assert 0 < device == task["storage_read_bytes"]
    ignored = [line for line in procs.collector.text().splitlines() if "calibration" in line]
    assert ignored == [f"crema: collect: calibration '{shared}' is ignored: it is damaged; remove it, and run: crema doctor --calibrate PATH"]
    lines = [line for line in (state / "crema" / "spool" / "agent.log").read_text().splitlines() if "calibration" in line]
    assert len(lines) == 1 and f"'{state}/crema/calibration' is ignored: it is damaged" in lines[0]
