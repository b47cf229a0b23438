/* SPDX-License-Identifier: BSD-3-Clause */
/* sampler_host.c - HOST messages (sampler.h). */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/sampler.h"
#include "common/mountstats.h"
#include "common/procfs.h"

#define RETRY_NS 5000000000u

/* A name in the abstract socket space: it disappears with its holder and leaves no file. */
static int try_lock(uint64_t collector)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "crema-host-%u-%016" PRIx64,
			 (unsigned int)geteuid(), collector);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&name,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0)
		return fd;
	close(fd);
	return -EBUSY;
}

static bool is_ours(struct sampler *s, uint64_t mono_ns)
{
	int fd;

	if (s->lock_fd >= 0)
		return true;
	if (s->lock_tried_ns && mono_ns - s->lock_tried_ns < RETRY_NS)
		return false;
	s->lock_tried_ns = mono_ns;
	fd = try_lock(s->collector);
	s->lock_fd = fd < 0 ? -1 : fd;
	return s->lock_fd >= 0;
}

/* False on a virtual machine whose hypervisor does not report stolen time: it always shows 0, like
 * a physical machine. */
static bool tells_of_stealing(uint64_t ticks)
{
	char cpu[4096], *flags, *end;

	if (ticks)
		return true;
	if (procfs_slurp(cpu, sizeof(cpu), "/proc/cpuinfo") <= 0)
		return false;
	flags = strstr(cpu, "\nflags");
	end = flags ? strchr(flags + 1, '\n') : NULL;
	if (!end)
		return false;
	*end = '\0';
	return !strstr(flags, " hypervisor");
}

static struct reading stolen(uint64_t ticks)
{
	long hz = sysconf(_SC_CLK_TCK);

	return reading_real(hz > 0 && tells_of_stealing(ticks), (double)ticks / (double)hz);
}

static void read_cpu(struct sampler *s, struct reading *v)
{
	char buf[512];
	uint64_t t[8] = {0}, total = 0, busy;

	if (procfs_slurp(buf, sizeof(buf), "/proc/stat") <= 0 ||
	    sscanf(buf,
		   "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64,
		   &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) < 8)
		return;
	for (int i = 0; i < 8; i++)
		total += t[i];
	busy = total - t[3] - t[4]; /* idle, iowait */
	if (s->host_total && total > s->host_total && busy >= s->host_busy)
		v[CREMA_HOST_N_cpu_percent] =
			reading_real(true, 100.0 * (double)(busy - s->host_busy) /
						   (double)(total - s->host_total));
	s->host_total = total;
	s->host_busy = busy;
	v[CREMA_HOST_N_stolen_seconds] = stolen(t[7]);
}

static void read_memory(struct reading *v)
{
	char buf[2048];
	const char *text = procfs_slurp(buf, sizeof(buf), "/proc/meminfo") > 0 ? buf : NULL;

	v[CREMA_HOST_N_memory_total_bytes] = reading_line(text, "MemTotal:", 1024);
	v[CREMA_HOST_N_memory_available_bytes] = reading_line(text, "MemAvailable:", 1024);
}

static void read_load(struct reading *v)
{
	char buf[128];

	if (procfs_slurp(buf, sizeof(buf), "/proc/loadavg") > 0)
		v[CREMA_HOST_N_load1] = reading_real(true, strtod(buf, NULL));
}

static bool is_hardware(const char *interface)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/net/%.20s/device", interface);
	return access(path, F_OK) == 0;
}

/*
 * Hardware interfaces only: bridges, bonds, tunnels and containers' ends would count the same bytes
 * again. If there is none, as in a container, all but loopback.
 */
static void read_net(struct reading *v)
{
	struct buf file = BUF_INIT;
	char *text, *line, name[64];
	uint64_t r, w, in[2] = {0}, out[2] = {0};
	bool any = false, hardware;
	int rc = procfs_slurp_all(&file, "/proc/net/dev");

	for (text = rc ? NULL : (char *)file.data; (line = strsep(&text, "\n"));) {
		const char *colon = strchr(line, ':');

		if (!colon || sscanf(line, " %63[^:]", name) != 1 || !strcmp(name, "lo") ||
		    sscanf(colon + 1, "%" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &r, &w) !=
			    2)
			continue;
		hardware = is_hardware(name);
		any = any || hardware;
		in[hardware] += r;
		out[hardware] += w;
	}
	v[CREMA_HOST_N_net_read_bytes] = reading_uint(!rc, in[any]);
	v[CREMA_HOST_N_net_write_bytes] = reading_uint(!rc, out[any]);
	buf_release(&file);
}

/* Whole devices only: partitions and the layers above them would count the same bytes again. */
static bool is_whole_device(const char *name)
{
	char path[160];

	if (strncmp(name, "loop", 4) == 0 || strncmp(name, "ram", 3) == 0 ||
	    strncmp(name, "dm-", 3) == 0 || strncmp(name, "md", 2) == 0)
		return false;
	snprintf(path, sizeof(path), "/sys/block/%s", name);
	return access(path, F_OK) == 0;
}

static void read_disk(struct reading *v)
{
	struct buf file = BUF_INIT;
	char *text, *line, name[128];
	uint64_t in = 0, out = 0, r, w;
	int rc = procfs_slurp_all(&file, "/proc/diskstats");

	for (text = rc ? NULL : (char *)file.data; (line = strsep(&text, "\n"));) {
		if (sscanf(line, "%*u %*u %127s %*u %*u %" SCNu64 " %*u %*u %*u %" SCNu64, name, &r,
			   &w) != 3 ||
		    !is_whole_device(name))
			continue;
		in += r * 512;
		out += w * 512;
	}
	v[CREMA_HOST_N_disk_read_bytes] = reading_uint(!rc, in);
	v[CREMA_HOST_N_disk_write_bytes] = reading_uint(!rc, out);
	buf_release(&file);
}

/* Counters of what is mounted here; a mount of another container is reported by its own sender. */
static void read_mounts(struct reading *v)
{
	struct mount_bytes nfs, lustre;

	mount_bytes_read("/proc", &nfs, &lustre);
	v[CREMA_HOST_N_nfs_set] = reading_uint(!nfs.error, nfs.set);
	v[CREMA_HOST_N_nfs_read_bytes] = reading_uint(!nfs.error, nfs.read_bytes);
	v[CREMA_HOST_N_nfs_server_read_bytes] = reading_uint(!nfs.error, nfs.server_read_bytes);
	v[CREMA_HOST_N_lustre_set] = reading_uint(!lustre.error, lustre.set);
	v[CREMA_HOST_N_lustre_read_bytes] = reading_uint(!lustre.error, lustre.read_bytes);
	v[CREMA_HOST_N_lustre_server_read_bytes] =
		reading_uint(!lustre.error, lustre.server_read_bytes);
}

void sampler_host(struct sampler *s, uint64_t mono_ns, uint64_t boot_ns)
{
	struct reading v[CREMA_HOST_NUMBERS] = {0};
	msgpack_packer *pk;

	if (!is_ours(s, mono_ns))
		return;
	read_cpu(s, v);
	read_memory(v);
	read_load(v);
	read_net(v);
	read_disk(v);
	read_mounts(v);
	pk = outbox_begin_map(s->out, OUTBOX_LIGHT, CREMA_MSG_HOST);
	pack_kv_u64(pk, "boot_ns", boot_ns);
	sampler_pack(pk, row_host, v, CREMA_HOST_NUMBERS);
	outbox_end_map(s->out, OUTBOX_LIGHT);
}
