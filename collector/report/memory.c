/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.c - the parts of a worker's resident set at its maximum. */
#include "collector/report/memory.h"

#include <math.h>

static double resident_of(const struct sample *s)
{
	return s->rss_anon_bytes + s->rss_file_bytes + s->rss_shmem_bytes;
}

/* A process that ends after its last task returns all memory: later samples do not count. */
static bool within(const struct run *run, const struct sample *s)
{
	return s->time >= run->start && s->time <= run->stop;
}

/* Whether it is one of the run's, with all parts known. */
static bool has_parts(const struct run *run, const struct sample *s)
{
	return within(run, s) && s->rss_anon_bytes >= s->heap_free_bytes &&
	       s->heap_returnable_bytes >= 0 && resident_of(s) >= 0;
}

static void take_parts(struct worker_memory *m, const struct sample *s)
{
	m->time = s->time;
	m->resident = value_real(resident_of(s));
	m->in_use = value_real(s->rss_anon_bytes - s->heap_free_bytes);
	m->held = value_real(s->heap_free_bytes);
	m->returnable = value_real(s->heap_returnable_bytes);
	m->file = value_real(s->rss_file_bytes);
	m->shared = value_real(s->rss_shmem_bytes);
}

struct worker_memory worker_memory(const struct run *run, const struct worker *w)
{
	struct worker_memory m = {.worker = w, .time = (double)NAN};
	double most = -1, kept = INFINITY;
	const struct sample *s;
	size_t i, n = 0;

	for (i = 0; i < w->samples.n; i++) {
		s = &w->samples.v[i];
		m.samples += within(run, s);
		if (!has_parts(run, s))
			continue;
		m.readings++;
		if (resident_of(s) > most) {
			most = resident_of(s);
			take_parts(&m, s);
		}
	}
	for (i = 0; i < w->samples.n; i++) {
		s = &w->samples.v[i];
		if (has_parts(run, s) && ++n > m.readings / 2)
			kept = fmin(kept, s->heap_returnable_bytes);
	}
	if (m.readings >= MEMORY_READINGS)
		m.kept = value_real(kept);
	return m;
}

void worker_memory_json(const struct run *run, struct json *j)
{
	emit_array(j, "worker_memory");
	for (size_t i = 0; i < run->workers.n; i++) {
		struct worker_memory row = worker_memory(run, run->workers.v[i]), *m = &row;

		emit_object(j, NULL);
#define CELL(name, type, value) emit_value(j, #name, value);
#include "collector/report/cells_memory.def"
		emit_end(j);
	}
	emit_end(j);
}
