/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_close.c - settles the model: clocks to UTC, workers that are gone, attempts without an end.
 */
#include "collector/model/model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/model/lost.h"
#include "common/rows.h"

/* How that line of the agent begins (agent/ending.c). */
#define ORPHAN "its parent"

static int by_boot(const void *a, const void *b)
{
	uint64_t x, y;

	/* boot_ns is the first member of every kind of sample */
	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

_Static_assert(offsetof(struct sample, boot_ns) == 0 && offsetof(struct probe, boot_ns) == 0 &&
		       offsetof(struct host_sample, boot_ns) == 0 &&
		       offsetof(struct outside, boot_ns) == 0 &&
		       offsetof(struct clock_pair, boot_ns) == 0,
	       "by_boot() reads the first member");

/* Sorts by time and drops duplicates; returns how many remain. */
static size_t settle_samples(void *v, size_t n, size_t size)
{
	unsigned char *p = v;
	size_t i, kept = 0;

	if (!n)
		return 0;
	qsort(v, n, size, by_boot);
	for (i = 1; i < n; i++) {
		if (by_boot(p + kept * size, p + i * size))
			kept++;
		memmove(p + kept * size, p + i * size, size);
	}
	return kept + 1;
}

/* The worker's own realtime clock counts only if the collector's is unknown. */
static void prefer_collectors(struct worker *w)
{
	struct clock_pair *v = w->clocks.v;
	size_t i, kept = 0;

	for (i = 0; i < w->clocks.n; i++) {
		if (!v[i].local)
			v[kept++] = v[i];
	}
	if (kept)
		w->clocks.n = kept;
}

/*
 * Pairs of a worker's boot time and the collector's clock are on one line, apart from the drift of
 * the worker's clock. If they are not, the collector's clock was set. Then only the pairs that
 * agree with the latest one count, so that all times are from one clock.
 */
static void settle_clocks(struct worker *w)
{
	struct clock_pair *v = w->clocks.v, newest;
	double ahead, apart;
	size_t i, kept = 0;

	prefer_collectors(w);
	w->clocks.n = settle_samples(v, w->clocks.n, sizeof(*v));
	if (!w->clocks.n || v[0].local)
		return;
	newest = v[w->clocks.n - 1];
	for (i = 0; i < w->clocks.n; i++) {
		apart = (double)(newest.boot_ns - v[i].boot_ns) / 1e9;
		ahead = ((double)newest.real_ns - (double)v[i].real_ns) / 1e9 - apart;
		if (fabs(ahead) <= MODEL_CLOCK_SET_SECONDS + MODEL_CLOCK_DRIFT * apart)
			v[kept++] = v[i];
		else if (fabs(ahead) > fabs(w->clock_set_seconds))
			w->clock_set_seconds = ahead;
	}
	w->clocks.n = kept;
}

static uint64_t gaps(const struct worker *w)
{
	uint64_t lost = 0;
	size_t i, j;

	for (i = 0; i < w->streams.n; i++) {
		const struct stream *s = &w->streams.v[i];

		for (j = 0; j < s->ranges.n; j++)
			lost += s->ranges.v[j].from - (j ? s->ranges.v[j - 1].to : 0);
	}
	return lost;
}

static uint64_t lost(const struct worker *w)
{
	const struct value *refused = &w->totals.records_refused;

	return lost_records(gaps(w), refused->type == VALUE_UINT ? refused->v.u : 0);
}

static void settle_worker(struct worker *w)
{
	size_t i;

	settle_clocks(w);
	w->samples.n = settle_samples(w->samples.v, w->samples.n, sizeof(*w->samples.v));
	w->hosts.n = settle_samples(w->hosts.v, w->hosts.n, sizeof(*w->hosts.v));
	w->probes.n = settle_samples(w->probes.v, w->probes.n, sizeof(*w->probes.v));
	w->outside.n = settle_samples(w->outside.v, w->outside.n, sizeof(*w->outside.v));
	for (i = 0; i < w->samples.n; i++)
		w->samples.v[i].time = worker_utc(w, w->samples.v[i].boot_ns);
	for (i = 0; i < w->hosts.n; i++)
		w->hosts.v[i].time = worker_utc(w, w->hosts.v[i].boot_ns);
	for (i = 0; i < w->probes.n; i++)
		w->probes.v[i].time = worker_utc(w, w->probes.v[i].boot_ns);
	for (i = 0; i < w->taken.n; i++)
		w->taken.v[i].time = worker_utc(w, w->taken.v[i].boot_ns);
	for (i = 0; i < w->evidence.n; i++)
		w->orphan |= !strncmp(w->evidence.v[i], ORPHAN, strlen(ORPHAN)) && w->goodbye_how &&
			     !strcmp(w->goodbye_how, "exit");
	w->first = worker_utc(w, w->first_boot_ns);
	w->last = worker_utc(w, w->last_boot_ns);
	w->records_lost = lost(w);
}

/* A worker's facts may predate its listening address: its tasks have the address. */
static void take_addresses(struct model *m)
{
	struct attempt *a;
	size_t i;

	for (i = 0; i < m->attempts.n; i++) {
		a = m->attempts.v[i];
		if (a->c.shared && !a->worker->address)
			a->worker->address = a->c.shared->worker_address;
		if (a->c.shared && !a->worker->name)
			a->worker->name = a->c.shared->worker_name;
	}
}

static bool same_text(const void *item, const void *key)
{
	return item == key;
}

/*
 * Dask's address, else host and pid, else the id. The id is appended if an earlier worker has the
 * same label. `labels` has those so far: interned, so the pointer identifies the text.
 */
static void name_worker(struct model *m, struct worker *w, struct table *labels)
{
	char text[512];
	void *label;

	if (w->address && *w->address)
		snprintf(text, sizeof(text) - 16, "%s", w->address);
	else if (w->host && w->pid.type == VALUE_UINT)
		snprintf(text, sizeof(text) - 16, "%s:%llu", w->host,
			 (unsigned long long)w->pid.v.u);
	else
		snprintf(text, sizeof(text) - 16, "%s", w->hex);
	w->label = model_text(m, (struct text){text, strlen(text)});
	if (table_find(labels, hash_pair((uintptr_t)w->label, 0), same_text, w->label)) {
		snprintf(text + strlen(text), 16, " %.12s", w->hex);
		w->label = model_text(m, (struct text){text, strlen(text)});
	}
	if (!w->label)
		w->label = w->hex;
	memcpy(&label, &w->label, sizeof(label)); /* lookup only */
	if (table_add(labels, hash_pair((uintptr_t)label, 0), label))
		m->error = -ENOMEM;
}

static enum attempt_state state_of(const struct attempt *a)
{
	static const struct {
		const char *status;
		enum attempt_state state;
	} said[] = {{"ok", ATTEMPT_OK},
		    {"erred", ATTEMPT_ERRED},
		    {"killed", ATTEMPT_KILLED},
		    {"lost", ATTEMPT_LOST}};
	const char *status = a->c.shared ? a->c.shared->status : NULL;
	const struct worker *w = a->worker;
	size_t i;

	for (i = 0; status && i < sizeof(said) / sizeof(*said); i++) {
		if (!strcmp(status, said[i].status))
			return said[i].state;
	}
	if (w->goodbye)
		return w->goodbye_how && !strcmp(w->goodbye_how, "killed") ? ATTEMPT_KILLED
									   : ATTEMPT_LOST;
	return w->silent ? ATTEMPT_LOST : ATTEMPT_RUNNING;
}

static void settle_attempt(struct attempt *a)
{
	struct value start = attempt_u64(a, TASK_F_start_boot_ns);
	struct value stop = attempt_u64(a, TASK_F_stop_boot_ns);
	struct value wall = attempt_u64(a, TASK_F_wall_ns);
	const struct worker *w = a->worker;

	if (start.type == VALUE_UINT)
		a->begin_ns = worker_utc_ns(w, start.v.u);
	if (stop.type == VALUE_UINT)
		a->end_ns = worker_utc_ns(w, stop.v.u);
	else if (wall.type == VALUE_UINT)
		a->end_ns = worker_utc_ns(w, (start.type == VALUE_UINT ? start.v.u : 0) + wall.v.u);
	else
		a->end_ns = a->begin_ns;
	a->state = state_of(a);
}

void model_close_attempts(struct model *m)
{
	size_t i;

	for (i = 0; i < m->attempts.n; i++)
		settle_attempt(m->attempts.v[i]);
}

static double newest_sign(const struct model *m)
{
	double newest = (double)NAN;
	size_t i;

	for (i = 0; i < m->workers.n; i++)
		newest = fmax(newest, m->workers.v[i]->last);
	return newest;
}

/* The worker uses io_uring: the read and write calls of the file are incomplete. */
static void hide_calls(struct file_row *f)
{
	for (size_t i = 0; i < CREMA_FILE_NUMBERS; i++) {
		if (row_file_seen[i] & ROW_NO_URING)
			f->number[i] = value_null();
	}
}

int model_close(struct model *m, uint64_t now_ns)
{
	double newest = (double)m->last_note_ns / 1e9;
	struct table labels = {0};
	bool clock_set = false;
	struct worker *w;
	size_t i;

	take_addresses(m);
	history_thin(m);
	for (i = 0; i < m->workers.n; i++) {
		name_worker(m, m->workers.v[i], &labels);
		settle_worker(m->workers.v[i]);
		clock_set = clock_set || m->workers.v[i]->clock_set_seconds != 0;
	}
	table_release(&labels);
	/* Workers that saw the clock being set have times of the new clock; notes may be of
	 * the old one. */
	if (clock_set)
		newest = 0;
	for (i = 0; i < m->workers.n; i++) {
		w = m->workers.v[i];
		if (w->last > newest && (!clock_set || w->clock_set_seconds != 0))
			newest = w->last;
	}
	for (i = 0; i < m->workers.n; i++) {
		w = m->workers.v[i];
		w->silent = !w->goodbye &&
			    (w->last < newest - MODEL_SILENT_SECONDS ||
			     (now_ns && w->last < (double)now_ns / 1e9 - MODEL_STALE_SECONDS));
	}
	for (i = 0; i < m->files.n; i++) {
		if (m->files.v[i]->worker->totals.io_uring)
			hide_calls(m->files.v[i]);
	}
	m->newest = newest_sign(m);
	model_close_attempts(m);
	return m->error;
}
