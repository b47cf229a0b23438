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
	heap_watch_init(&s->heap, pid);
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

struct reading reading_line(const char *text, const char *name, uint64_t scale)
{
	uint64_t v = 0;
	bool known = text && procfs_number(text, name, &v);

	return reading_uint(known, v * scale);
}

void sampler_pack(msgpack_packer *pk, const char *const *name, const struct reading *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i].type == READING_REAL)
			pack_kv_f64(pk, name[i], v[i].real);
		else
			pack_kv_maybe(pk, name[i], v[i].type == READING_UINT, v[i].uint);
	}
}

static void read_cpu(struct sampler *s, uint64_t mono_ns, struct reading *v)
{
	uint64_t cpu = 0;
	bool known = procfs_cpu(s->pid, &cpu);
	bool both = known && s->cpu_ns && cpu >= s->cpu_ns && mono_ns > s->mono_ns;

	v[CREMA_SAMPLE_N_cpu_seconds] = reading_real(known, (double)cpu / 1e9);
	if (both)
		v[CREMA_SAMPLE_N_cpu_percent] = reading_real(
			true, 100.0 * (double)(cpu - s->cpu_ns) / (double)(mono_ns - s->mono_ns));
	s->cpu_ns = known ? cpu : 0;
	s->mono_ns = mono_ns;
}

static void read_heap(struct sampler *s, uint64_t mono_ns, struct reading *v)
{
	struct heap_sums sums = {0};
	bool known = heap_watch_read(&s->heap, mono_ns, &sums);

	v[CREMA_SAMPLE_N_heap_bytes] = reading_uint(known, sums.resident);
	v[CREMA_SAMPLE_N_heap_free_bytes] = reading_uint(known, sums.free);
	v[CREMA_SAMPLE_N_heap_returnable_bytes] = reading_uint(known, sums.returnable);
}

void sampler_worker(struct sampler *s, uint32_t running, uint64_t count_unknown, uint64_t mono_ns,
		    uint64_t boot_ns)
{
	msgpack_packer *pk = outbox_begin_map(s->out, OUTBOX_LIGHT, CREMA_MSG_SAMPLE);
	struct reading v[CREMA_SAMPLE_NUMBERS] = {0};
	char status[4096];
	bool ok = procfs_slurp(status, sizeof(status), "/proc/%d/status", s->pid) > 0, has_io;
	const char *text = ok ? status : NULL;
	uint64_t in = 0, out = 0;
	struct rows_sums sums;

	read_cpu(s, mono_ns, v);
	v[CREMA_SAMPLE_N_rss_bytes] = reading_uint(s->rss != 0, s->rss);
	v[CREMA_SAMPLE_N_rss_anon_bytes] = reading_line(text, "RssAnon:", 1024);
	v[CREMA_SAMPLE_N_rss_file_bytes] = reading_line(text, "RssFile:", 1024);
	v[CREMA_SAMPLE_N_rss_shmem_bytes] = reading_line(text, "RssShmem:", 1024);
	read_heap(s, mono_ns, v);
	v[CREMA_SAMPLE_N_threads] = reading_line(text, "Threads:", 1);
	v[CREMA_SAMPLE_N_tasks_running] = reading_uint(true, running);
	has_io = procfs_io(s->pid, 0, &in, &out);
	count_unknown = drain_unknown_total(count_unknown) | s->view->shm->totals.count_unknown;
	rows_sum(s->view, false, &sums);
	pack_kv_u64(pk, "boot_ns", boot_ns);
	sampler_pack(pk, row_sample, v, CREMA_SAMPLE_NUMBERS);
	procfs_pack(pk, "hwm_bytes", text, "VmHWM:", 1024);
	pack_kv_maybe(pk, "io_read_bytes", has_io, in);
	pack_kv_maybe(pk, "io_write_bytes", has_io, out);
	pack_kv_u64(pk, "tasks_done", s->view->shm->totals.tasks_done);
	for (unsigned int i = 0; i < CREMA_COUNTS; i++)
		pack_kv_maybe(pk, task_name(TASK_FIELDS + 2 * CREMA_TIMES + i),
			      !((count_unknown | sums.unattributed_unknown) >> i & 1u),
			      sums.tasks.count[i] + sums.unattributed.count[i]);
	outbox_end_map(s->out, OUTBOX_LIGHT);
}
