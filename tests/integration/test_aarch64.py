# SPDX-License-Identifier: BSD-3-Clause
"""The wheel for aarch64, and its unit and shim tests in an emulator. The first run compiles for twenty minutes, so this is
a matrix cell."""

import os
import re
import signal
import subprocess
import zipfile

import cluster
import packages
import pytest
from test_package import BUILD_SECONDS, right

TRIES = 3  # as in tests/run-programs for the shim's tests

# How the emulator differs from Linux, and the tests that depend on it.
EMULATED = {
    "madvise() does nothing: a forked child keeps what it should find wiped": {
        "a_forked_child_is_dormant", "arming_fails_cleanly_under_a_file_limit", "a_full_arena_says_so", "test_fork",
        "a_locked_file_is_a_lock"},
    "clone() makes no child that ends without a signal": {"the_host_notices_nothing"},
    "programs for it cannot be started by execve()": {
        "the_library_is_found_beside_or_in_lib", "an_existing_preload_is_kept_behind_ours",
        "status_and_signals_are_the_commands_own", "a_library_that_fails_costs_the_measurement_only",
        "the_trial_works_where_sigchld_is_ignored", "a_path_with_a_space_is_reached_through_a_link",
        "a_path_that_ld_preload_cannot_hold_is_refused", "memory_before_exec_is_not_ours"},
    "a main thread that ends takes the others with it": {"test_ended_when_the_last_thread_has"},
    "/proc/PID/maps shows the emulator's memory to others, and reads of it return that": {
        "test_an_address_becomes_a_name", "test_records_become_rows", "test_waits_have_the_class_of_their_call", "test_trim",
        "test_broken"},
    "/proc/PID/syscall has the machine's own numbers": {"test_a_row", "test_the_longest_message", "test_objects"},
    "it has no NETLINK_SOCK_DIAG, and the tables in /proc are read a few times per second only": {
        "over_ipv4", "over_ipv6", "of_another_user", "through_a_proxy_a_link_is_needed", "data_is_made_once_for_all"},
    "there is no libunwind for it": {"test_a_call_that_is_not_intercepted", "test_when_it_is_sent"},
    "it takes time of its own": {
        "what_threads_did_adds_up_to_the_process", "memory_is_seen_at_both_ends", "short_waits_of_one_class",
        "pool_threads_count_within_and_apart", "two_spinners_on_one_core_wait_for_it",
        "waiting_for_the_address_space_is_unclassified", "a_sleep_on_a_busy_core_is_sleep", "pool_threads_work_for_the_task",
        "a_new_thread_without_a_core_is_looked_at", "warm_reads_of_a_pool_are_a_lock"},
}


@pytest.fixture(scope="module")
def libs():
    """The libraries it is built with, and the programs in their folder crema."""
    signal.alarm(BUILD_SECONDS)  # instead of the usual hang limit
    right([cluster.ROOT / "scripts" / "package", "wheel-aarch64"], timeout=BUILD_SECONDS)
    return cluster.BUILD / "package" / "aarch64"


@pytest.mark.matrix
def test_wheel(libs, tmp_path):
    (wheel,) = (cluster.BUILD / "package").glob("*_aarch64.whl")
    assert "manylinux_2_17_aarch64" in wheel.name
    with zipfile.ZipFile(wheel) as files:
        files.extractall(tmp_path)
    for name in ("crema", "crema-agent", "libcrema.so"):
        program = tmp_path / "crema" / "bin" / name
        assert program.read_bytes() == (libs / "crema" / name).read_bytes()
        assert "AArch64" in right(["readelf", "-h", program])


def outcome(program, emulator):
    """(what passed, what failed) of a test program. One that ends too early failed in the test that it had begun."""
    done = subprocess.run([*emulator, program], cwd=program.parent.parent.parent, capture_output=True, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, timeout=600)
    text = done.stdout + done.stderr
    begun = re.findall(r"^\[ RUN      \] (\w+)$", text, re.MULTILINE)
    assert begun, (program.name, done.returncode, text[-2000:])
    return (set(re.findall(r"^\[       OK \] (\w+)$", text, re.MULTILINE)),
            {*re.findall(r"^\[  (?:FAILED|ERROR ) +\] (\w+)$", text, re.MULTILINE), *(begun[-1:] if "test(s) run." not in text else ())})


@pytest.fixture(scope="module")
def emulator(libs):
    """The command that runs a program; the tests' programs are compiled."""
    signal.alarm(BUILD_SECONDS)
    right(["make", "-C", cluster.ROOT, f"-j{os.cpu_count()}", "-f", "package/portable.mk", "-f", "Makefile", f"LIBS={libs}",
           "test-programs"], timeout=BUILD_SECONDS)
    place = packages.unpacked("aarch64", "qemu-user-static", "libc6-arm64-cross",
                              "libgcc-s1-arm64-cross")
    return [place / "usr/bin/qemu-aarch64-static", "-L", place / "usr/aarch64-linux-gnu"]


@pytest.mark.matrix
def test_in_an_emulator(libs, emulator):
    signal.alarm(BUILD_SECONDS)
    assert right([*emulator, libs / "crema" / "crema", "--version"]).startswith("crema ")
    allowed = set().union(*EMULATED.values())
    programs = sorted(p for kind in ("unit", "shim") for p in (libs / "crema" / "tests" / kind).glob("test_*") if not p.suffix)
    assert len(programs) == sum(1 for kind in ("unit", "shim") for _ in (cluster.ROOT / "tests" / kind).glob("test_*.c"))
    passed, failed = set(), set()
    for program in programs:
        # They load libunwind8, which Debian has only for aarch64 itself; test_clock_steps is about single steps of x86-64.
        if program.name in ("test_blocked", "test_native_stack", "test_clock_steps"):
            continue
        for _ in range(TRIES):
            ok, wrong = outcome(program, emulator)
            if wrong <= allowed:
                break
            print(program.name, sorted(wrong - allowed))
        passed |= ok
        failed |= wrong
    print(len(passed), "passed,", sorted(failed), "did not")
    assert failed <= allowed
    assert len(passed) > 300


# Those whose results do not depend on /proc/self/statm, which has the machine's own pages, nor on what time it takes.
PAGED = ["test_byte_sample", "test_clock", "test_column", "test_counts", "test_extent", "test_full", "test_io", "test_large", "test_ways"]


@pytest.mark.matrix
@pytest.mark.parametrize("page", [16 << 10, 64 << 10])
def test_larger_pages(libs, emulator, tmp_path, page):
    emulator = [*emulator, "-p", str(page)]
    (tmp_path / "page.c").write_text('#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf("%ld", sysconf(_SC_PAGESIZE)); }\n')
    right([cluster.BUILD / "package/venv/bin/python", "-m", "ziglang", "cc", "-target", "aarch64-linux-gnu.2.17", "-o", tmp_path / "page", tmp_path / "page.c"])
    assert right([*emulator, tmp_path / "page"]) == str(page)
    allowed = set().union(*EMULATED.values())
    for name in PAGED:
        ok, wrong = outcome(libs / "crema" / "tests" / "shim" / name, emulator)
        assert ok and wrong <= allowed, (name, wrong)
