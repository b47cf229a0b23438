/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.c - properties of this machine that decide which numbers are available. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "collector/doctor/doctor.h"
#include "collector/preload/preload.h"
#include "common/clock.h"
#include "common/procfs.h"
#include "common/log.h"
#include "shm.h"
#include "version.h"

#define MIB 1048576.0

/* The first line of a small file; -errno. */
static int first_line(const char *path, char *out, size_t size)
{
	ssize_t n = procfs_slurp(out, size, "%s", path);
	int err = n < 0 ? (int)n : n ? 0 : -ENODATA;

	out[n > 0 ? strcspn(out, "\n") : 0] = '\0';
	return err;
}

static void look_at_kernel(struct doctor *d)
{
	struct utsname u;
	int major = 0, minor = 0;

	if (uname(&u) || sscanf(u.release, "%d.%d", &major, &minor) != 2) {
		doctor_say(d, DOCTOR_UNKNOWN, "kernel", "the kernel's version cannot be read");
		return;
	}
	if (major > 4 || (major == 4 && minor >= 14))
		doctor_say(d, DOCTOR_OK, "kernel", "Linux %s on %s", u.release, u.machine);
	else {
		doctor_say(d, DOCTOR_BAD, "kernel", "Linux %s is older than 4.14", u.release);
		doctor_advise(d, "crema measures workers only on newer kernels");
	}
}

static void look_at_shared_memory(struct doctor *d)
{
	struct statvfs v;
	double free_mib;

	if (statvfs("/dev/shm", &v) || access("/dev/shm", W_OK)) {
		doctor_say(d, DOCTOR_WARN, "memory", "/dev/shm: %s; workers use $TMPDIR or /tmp",
			   log_error(errno));
		doctor_advise(d, "mount a tmpfs there: on a disk, counters cause writes");
		return;
	}
	free_mib = (double)v.f_bavail * (double)v.f_frsize / MIB;
	if (free_mib < sizeof(struct crema_shm) / MIB) {
		doctor_say(d, DOCTOR_BAD, "memory",
			   "%.1f MiB are free in /dev/shm; each worker needs %.1f", free_mib,
			   sizeof(struct crema_shm) / MIB);
		doctor_advise(d, "remove files there, or make it larger (containers: --shm-size)");
	} else {
		doctor_say(d, DOCTOR_OK, "memory",
			   "%.0f MiB are free in /dev/shm: room for %.0f workers", free_mib,
			   free_mib / (sizeof(struct crema_shm) / MIB));
	}
}

static void look_at_limits(struct doctor *d)
{
	struct rlimit file, files;

	if (getrlimit(RLIMIT_FSIZE, &file) || getrlimit(RLIMIT_NOFILE, &files)) {
		doctor_say(d, DOCTOR_UNKNOWN, "limits", "cannot be read");
		return;
	}
	if (file.rlim_cur < sizeof(struct crema_shm)) {
		doctor_say(d, DOCTOR_BAD, "limits",
			   "files may be %llu bytes (ulimit -f): a worker's counters do not fit",
			   (unsigned long long)file.rlim_cur);
		doctor_advise(d, "ulimit -f unlimited where workers are started");
	} else if (files.rlim_cur < 256) {
		doctor_say(d, DOCTOR_WARN, "limits", "%llu open files (ulimit -n)",
			   (unsigned long long)files.rlim_cur);
		doctor_advise(d, "a collector needs one file per worker: ulimit -n 4096");
	} else {
		doctor_say(d, DOCTOR_OK, "limits",
			   "%llu open files, files of any size that is needed",
			   (unsigned long long)files.rlim_cur);
	}
}

#define TELLS_AFTER_NS 50000000u /* CPU time: the kernel updates its count at its ticks */

/* Time spent runnable without a core: otherwise it is unclassified. */
static void look_at_run_delay(struct doctor *d)
{
	char line[128];
	unsigned long long cpu = 0, delay = 0;
	int err, n;

	do {
		err = first_line("/proc/thread-self/schedstat", line, sizeof(line));
		n = err ? 0 : sscanf(line, "%llu %llu", &cpu, &delay);
	} while (n == 2 && !cpu && clock_thread_ns() < TELLS_AFTER_NS);
	if (n == 2 && cpu) {
		doctor_say(d, DOCTOR_OK, "run queue",
			   "/proc/PID/schedstat reports waits for a core");
		return;
	}
	doctor_say(d, DOCTOR_WARN, "run queue", "/proc/thread-self/schedstat: %s",
		   err ? log_error(err) : "has no value");
	doctor_advise(d, "waits for a core are 'not classified' here (kernel without "
			 "CONFIG_SCHED_INFO, or /proc masked)");
}

static void look_at_clock(struct doctor *d)
{
	char line[128];
	int err = first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource",
			     line, sizeof(line));

	if (err)
		doctor_say(d, DOCTOR_UNKNOWN, "clock",
			   "the kernel's clock source cannot be read: %s", log_error(err));
	else if (!strcmp(line, "tsc") || !strcmp(line, "kvm-clock") || !strncmp(line, "arch", 4))
		doctor_say(d, DOCTOR_OK, "clock", "the kernel's source is %s", line);
	else {
		doctor_say(d, DOCTOR_WARN, "clock",
			   "the kernel's source is %s: the kernel does not trust the CPU's counter",
			   line);
		doctor_advise(d, "crema times short waits by that counter, but not the start and "
				 "end of tasks");
	}
}

/* Filters return ENOSYS or EPERM instead of the kernel. */
static void look_at_calls(struct doctor *d)
{
	static const struct {
		const char *name, *without;
		long number;
	} call[] = {
		{"pidfd_open", "agents find a worker's end by polling /proc", SYS_pidfd_open},
#ifdef SYS_close_range
		{"close_range", "an agent closes descriptors one by one when it starts",
		 SYS_close_range},
#endif
	};

	for (size_t i = 0; i < sizeof(call) / sizeof(call[0]); i++) {
		/* Invalid arguments, so that nothing happens. */
		long r = syscall(call[i].number, ~0u, 0u, ~0u);
		int err = r < 0 ? errno : 0;

		if (r >= 0)
			close((int)r);
		if (err != ENOSYS && err != EPERM)
			continue;
		doctor_say(d, DOCTOR_WARN, "system call", "%s: %s%s", call[i].name, log_error(err),
			   err == EPERM ? " (a seccomp filter)" : "");
		doctor_advise(d, "%s", call[i].without);
	}
}

/* Lists what crema never uses, so that users do not search for it. */
static void look_at_unused(struct doctor *d)
{
	char line[256];

	if (!first_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof(line)) &&
	    strcmp(line, "0"))
		doctor_say(d, DOCTOR_OK, "ptrace",
			   "is restricted (scope %s): crema does not need it", line);
	if (!first_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof(line)))
		doctor_say(d, DOCTOR_OK, "perf events",
			   "paranoid level %s: crema does not need them", line);
}

static bool can_be_opened(const char *name)
{
	void *library = dlopen(name, RTLD_LOCAL | RTLD_LAZY);

	if (library)
		dlclose(library);
	return library != NULL;
}

/* The library opens the first in workers, agents open the second; so do we, to see whether they
 * exist. */
static void look_at_libunwind(struct doctor *d)
{
	if (!can_be_opened("libunwind.so.8")) {
		doctor_say(d, DOCTOR_WARN, "call stacks",
			   "no libunwind.so.8: long waits are counted, but have no stacks");
		doctor_advise(d, "install it (Debian: libunwind8), or set CREMA_BLOCKED_MS=0");
	} else if (!can_be_opened("libunwind-ptrace.so.0")) {
		doctor_say(d, DOCTOR_OK, "call stacks",
			   "libunwind is installed, but not libunwind-ptrace.so.0: crema stuck "
			   "names no functions of C");
	} else {
		doctor_say(d, DOCTOR_OK, "call stacks", "libunwind is installed");
	}
}

void doctor_machine(struct doctor *d)
{
	look_at_kernel(d);
	look_at_shared_memory(d);
	look_at_limits(d);
	look_at_run_delay(d);
	look_at_clock(d);
	look_at_calls(d);
	look_at_libunwind(d);
	look_at_unused(d);
}

static void look_at_agent_program(struct doctor *d, const char *library)
{
	static const char *const place[] = {"crema-agent", "../../libexec/crema/crema-agent"};
	const char *slash = strrchr(library, '/'), *given = getenv("CREMA_AGENT");
	char path[PATH_MAX], whole[PATH_MAX];
	struct statvfs v;

	for (int i = 0; i < 3; i++) {
		if (i == 0)
			snprintf(path, sizeof(path), "%s", given ? given : "");
		else
			snprintf(path, sizeof(path), "%.*s/%s", slash ? (int)(slash - library) : 0,
				 library, place[i - 1]);
		if (!path[0] || access(path, X_OK))
			continue;
		if (!statvfs(path, &v) && (v.f_flag & ST_NOEXEC))
			continue;
		doctor_say(d, DOCTOR_OK, "agent", "is here: %s",
			   realpath(path, whole) ? whole : path);
		return;
	}
	doctor_say(d, DOCTOR_BAD, "agent", "there is no executable crema-agent for '%s'", library);
	doctor_advise(d,
		      "install all of crema on a file system without noexec, or set CREMA_AGENT");
}

void doctor_installation(struct doctor *d, const char *exe)
{
	static char library[PATH_MAX];
	char why[PATH_MAX + 64], path[PATH_MAX];

	if (preload_find(exe, library, sizeof(library))) {
		doctor_say(d, DOCTOR_BAD, "library",
			   "libcrema.so is neither next to '%s' nor in ../lib/crema", exe);
		doctor_advise(d, "reinstall crema");
		return;
	}
	d->library = library;
	if (preload_path(library, path, sizeof(path)) || preload_try(path, why, sizeof(why))) {
		doctor_say(d, DOCTOR_BAD, "library", "%s cannot be preloaded: %s", library, why);
		doctor_advise(d, "is it built for this machine? the wheel's library runs on glibc "
				 "2.17 and newer, not on musl");
	} else {
		doctor_say(d, DOCTOR_OK, "library", "crema %s, %s can be preloaded", CREMA_VERSION,
			   library);
	}
	look_at_agent_program(d, library);
}
