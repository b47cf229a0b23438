/* SPDX-License-Identifier: BSD-3-Clause */
/* procfs.c - small readers of /proc and cgroup files. */
#include "common/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ALL_MOST (8u << 20)
#define ALL_STEP 65536u

/* A descriptor or -errno. */
__attribute__((format(printf, 1, 0))) static int open_at(const char *format, va_list ap)
{
	char path[PATH_MAX];
	int n = vsnprintf(path, sizeof(path), format, ap), fd;

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

ssize_t procfs_slurp(char *buf, size_t size, const char *format, ...)
{
	size_t len = 0;
	ssize_t n = 0;
	va_list ap;
	int fd;

	va_start(ap, format);
	fd = open_at(format, ap);
	va_end(ap);
	if (fd < 0)
		return fd;
	while (len < size - 1) {
		n = read(fd, buf + len, size - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	n = n < 0 ? -errno : (ssize_t)len;
	close(fd);
	if (n >= 0)
		buf[n] = '\0';
	return n;
}

int procfs_slurp_all(struct buf *out, const char *format, ...)
{
	ssize_t n = 1;
	va_list ap;
	int fd, err = 0;

	va_start(ap, format);
	fd = open_at(format, ap);
	va_end(ap);
	if (fd < 0)
		return fd;
	while (n > 0 && !err && out->len < ALL_MOST) {
		err = buf_reserve(out, ALL_STEP);
		n = err ? -1 : read(fd, out->data + out->len, ALL_STEP);
		if (n < 0 && !err)
			err = -errno;
		out->len += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	return err ? err : buf_add(out, "\0", 2);
}

char procfs_state_in(const char *stat)
{
	const char *p = strrchr(stat, ')'); /* the name before it may hold anything */

	return p && p[1] == ' ' ? p[2] : '\0';
}

bool procfs_schedstat_in(const char *schedstat, uint64_t *cpu_ns, uint64_t *runqueue_ns)
{
	uint64_t cpu, runqueue;

	if (sscanf(schedstat, "%" SCNu64 " %" SCNu64, &cpu, &runqueue) != 2)
		return false;
	*cpu_ns = cpu;
	*runqueue_ns = runqueue;
	return true;
}

bool procfs_number(const char *text, const char *name, uint64_t *out)
{
	size_t n = strlen(name);
	const char *at = text;
	char *end;

	while (at) {
		if (strncmp(at, name, n) == 0) {
			uint64_t v = strtoull(at + n, &end, 10);

			if (end == at + n)
				return false;
			*out = v;
			return true;
		}
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	return false;
}

void procfs_pack(msgpack_packer *pk, const char *key, const char *text, const char *name,
		 uint64_t scale)
{
	uint64_t v = 0;
	bool known = text && procfs_number(text, name, &v);

	pack_kv_maybe(pk, key, known, v * scale);
}

#define EXITING 0x4u /* PF_EXITING of the kernel's include/linux/sched.h, in stat's "flags" */

int procfs_stat(int pid, int tid, struct procfs_stat *out)
{
	char buf[1024];
	unsigned int flags;
	ssize_t n = tid ? procfs_slurp(buf, sizeof(buf), "/proc/%d/task/%d/stat", pid, tid)
			: procfs_slurp(buf, sizeof(buf), "/proc/%d/stat", pid);

	if (n < 0)
		return (int)n;
	out->state = procfs_state_in(buf);
	if (!out->state || sscanf(strrchr(buf, ')') + 3,
				  "%d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d"
				  " %" SCNu64 " %*d %" SCNu64,
				  &out->ppid, &flags, &out->threads, &out->start_ticks) != 4)
		return -EPROTO;
	out->exiting = flags & EXITING;
	return 0;
}

bool procfs_ended(int pid, uint64_t start_ticks)
{
	struct procfs_stat st;
	int rc = procfs_stat(pid, 0, &st);

	if (rc == -ENOENT || rc == -ESRCH)
		return true;
	/* The main thread may have ended while others live, or while it frees a large memory. */
	return rc == 0 && (((st.state == 'Z' || st.state == 'X') && st.threads <= 1) ||
			   (start_ticks && st.start_ticks != start_ticks));
}

bool procfs_rss(int pid, uint64_t *bytes)
{
	char buf[128];
	uint64_t pages;

	if (procfs_slurp(buf, sizeof(buf), "/proc/%d/statm", pid) <= 0 ||
	    sscanf(buf, "%*u %" SCNu64, &pages) != 1 || pages == 0)
		return false;
	*bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

bool procfs_io(int pid, int tid, uint64_t *read_bytes, uint64_t *write_bytes)
{
	char buf[512];
	uint64_t r, w;
	ssize_t n = tid ? procfs_slurp(buf, sizeof(buf), "/proc/%d/task/%d/io", pid, tid)
			: procfs_slurp(buf, sizeof(buf), "/proc/%d/io", pid);

	if (n <= 0 || !procfs_number(buf, "read_bytes: ", &r) ||
	    !procfs_number(buf, "write_bytes: ", &w))
		return false;
	*read_bytes = r;
	*write_bytes = w;
	return true;
}

bool procfs_schedstat(int pid, int tid, uint64_t *cpu_ns, uint64_t *runqueue_ns)
{
	char buf[128];

	return procfs_slurp(buf, sizeof(buf), "/proc/%d/task/%d/schedstat", pid, tid) > 0 &&
	       procfs_schedstat_in(buf, cpu_ns, runqueue_ns);
}

bool procfs_cpu(int pid, uint64_t *cpu_ns)
{
	struct timespec t;
	clockid_t id;

	if (clock_getcpuclockid(pid, &id) != 0 || clock_gettime(id, &t) < 0)
		return false;
	*cpu_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	return true;
}

/* The group of one line of /proc/PID/cgroup, "N:CONTROLLERS:GROUP"; version 2 has N 0 and none. */
static bool group_of(const char *text, const char *controller, char *out, size_t size)
{
	size_t n = strlen(controller);

	for (const char *line = text; line && *line;) {
		const char *names = strchr(line, ':'), *end = strchr(line, '\n');
		const char *group = names ? strchr(names + 1, ':') : NULL;
		size_t length = group && end > group ? (size_t)(end - group) - 1 : 0;
		bool found = false;

		if (!group || !end)
			return false;
		for (const char *at = names + 1; !found && at <= group; at += strcspn(at, ",:") + 1)
			found = strcspn(at, ",:") == n && strncmp(at, controller, n) == 0;
		if (found && length < size) {
			memcpy(out, group + 1, length);
			out[length] = '\0';
			return true;
		}
		line = end + 1;
	}
	return false;
}

bool procfs_oom_file(int pid, char *out, size_t size)
{
	static const struct {
		const char *controller, *root, *file;
	} versions[] = {
		{"memory", "/sys/fs/cgroup/memory", "memory.oom_control"},
		{"", "/sys/fs/cgroup", "memory.events"},
	};
	char text[4096], group[PATH_MAX];
	uint64_t kills;

	if (procfs_slurp(text, sizeof(text), "/proc/%d/cgroup", pid) <= 0)
		return false;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		if (!group_of(text, versions[i].controller, group, sizeof(group)))
			continue;
		/* In a container the group may be named as seen from outside: then the root is
		 * ours. */
		for (int inside = 0; inside < 2; inside++) {
			if ((size_t)snprintf(out, size, "%s%s/%s", versions[i].root,
					     inside ? "" : group, versions[i].file) < size &&
			    procfs_oom_kills(out, &kills))
				return true;
		}
	}
	return false;
}

bool procfs_oom_kills(const char *file, uint64_t *kills)
{
	char text[4096];

	return procfs_slurp(text, sizeof(text), "%s", file) > 0 &&
	       procfs_number(text, "oom_kill ", kills);
}
