/* SPDX-License-Identifier: BSD-3-Clause */
/* sampler.c - SAMPLE messages: the worker's process. */
#include "agent/sampler.h"

#include <string.h>
#include <unistd.h>

#include "agent/rows.h"
#include "common/procfs.h"
#include "common/task.h"
#include "fnv.h"

void sampler_init(struct sampler *s, const struct view *v, struct outbox *out, int pid,
		  const char *collector)
{
	memset(s, 0, sizeof(*s));
	s->view = v;
	s->out = out;
	s->pid = pid;
	s->lock_fd = -1;
	s->collector =
		crema_hash_more(CREMA_HASH_BEGIN, collector, collector ? strlen(collector) : 0);
}

void sampler_release(struct sampler *s)
{
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	s->lock_fd = -1;
}

uint64_t sampler_rss(struct sampler *s)
{
	uint64_t rss = 0;

	procfs_rss(s->pid, &rss);
	if (rss)
		s->rss = rss;
	if (rss > s->rss_max)
		s->rss_max = rss;
	return rss;
}

static void pack_memory(msgpack_packer *pk, int pid)
{
	char status[4096];
	bool ok = procfs_slurp(status, sizeof(status), "/proc/%d/status", pid) > 0;
	const char *text = ok ? status : NULL;

	procfs_pack(pk, "rss_anon_bytes", text, "RssAnon:", 1024);
	procfs_pack(pk, "hwm_bytes", text, "VmHWM:", 1024);
	procfs_pack(pk, "threads", text, "Threads:", 1);
}

void sampler_worker(struct sampler *s, uint32_t running, uint64_t count_unknown, uint64_t mono_ns,
		    uint64_t boot_ns)
{
	msgpack_packer *pk = outbox_begin_map(s->out, OUTBOX_LIGHT, CREMA_MSG_SAMPLE);
	uint64_t cpu = 0, in = 0, out = 0;
	bool has_cpu = procfs_cpu(s->pid, &cpu), has_io = procfs_io(s->pid, 0, &in, &out);
	struct rows_sums sums;

	count_unknown |= s->view->shm->totals.count_unknown;
	rows_sum(s->view, false, &sums);
	pack_kv_u64(pk, "boot_ns", boot_ns);
	pack_text(pk, "cpu_percent");
	if (has_cpu && s->cpu_ns && cpu >= s->cpu_ns && mono_ns > s->mono_ns)
		pack_f64(pk, 100.0 * (double)(cpu - s->cpu_ns) / (double)(mono_ns - s->mono_ns));
	else
		pack_nil(pk);
	pack_text(pk, "cpu_seconds");
	if (has_cpu)
		pack_f64(pk, (double)cpu / 1e9);
	else
		pack_nil(pk);
	pack_kv_maybe(pk, "rss_bytes", s->rss != 0, s->rss);
	pack_memory(pk, s->pid);
	pack_kv_maybe(pk, "io_read_bytes", has_io, in);
	pack_kv_maybe(pk, "io_write_bytes", has_io, out);
	pack_kv_u64(pk, "tasks_running", running);
	pack_kv_u64(pk, "tasks_done", s->view->shm->totals.tasks_done);
	for (unsigned int i = 0; i < CREMA_COUNTS; i++)
		pack_kv_maybe(pk, task_name(TASK_FIELDS + 2 * CREMA_TIMES + i),
			      !((count_unknown | sums.unattributed_unknown) >> i & 1u),
			      sums.tasks.count[i] + sums.unattributed.count[i]);
	outbox_end_map(s->out, OUTBOX_LIGHT);
	s->cpu_ns = has_cpu ? cpu : 0;
	s->mono_ns = mono_ns;
}
