/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.c - which journal is read when, and what is known of all of them. */
#include "collector/watch/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/model/lost.h"
#include "collector/watch/watch_parts.h"
#include "common/auth.h"
#include "common/clock.h"
#include "common/log.h"

#define TURN_NS UINT64_C(20000000) /* the page waits meanwhile */
#define FRAMES 32u		   /* of one journal, before the next one */

/* One line when it fails, and one when it can be read again. */
static void set_error(struct watch_journal *j, int error)
{
	if (error && error != j->error)
		log_line("page: cannot read '%s': %s; the sums lack its records until it can be "
			 "read",
			 j->tail.folder, log_error(error));
	else if (!error && j->error)
		log_line("page: '%s' can be read again", j->tail.folder);
	j->error = error;
}

/* Reads some frames. */
static void read_some(struct watch *w, struct watch_journal *j)
{
	struct frame frame;
	unsigned int i;
	int rc = 1;

	for (i = 0; i < FRAMES && rc > 0; i++) {
		rc = tail_next(&j->tail, &frame);
		if (rc > 0) {
			watch_feed(w, j, &frame);
			j->moved_ns = clock_mono_ns();
		}
	}
	if (rc > 0)
		return;
	j->at_end = true;
	set_error(j, rc);
	j->read = j->read || !rc;
}

static bool is_reading(const struct watch_journal *j)
{
	return !j->read && !j->error;
}

static bool any_reading(const struct watch *w)
{
	size_t i;

	for (i = 0; i < w->n && !is_reading(&w->journals[i]); i++)
		;
	return i < w->n;
}

static uint64_t lost_now(const struct watch *w)
{
	const struct watch_worker *worker;
	uint64_t lost = 0;
	size_t at = 0;

	while ((worker = table_next(&w->workers, &at))) {
		if (worker->missing)
			lost += lost_records(worker->missing, live_refused(w->live, worker->id));
	}
	return lost;
}

static void set_reach(struct watch *w)
{
	struct live_reach reach = {.all = true, .losses = w->ticks >= WATCH_HOLD};
	uint64_t lost = UINT64_MAX;
	size_t i;

	for (i = 0; i < w->n; i++) {
		reach.any |= w->journals[i].read;
		reach.all &= w->journals[i].read && !w->journals[i].error;
	}
	reach.losses &= reach.all;
	for (i = 0; i < WATCH_HOLD; i++)
		lost = w->held[i] < lost ? w->held[i] : lost;
	reach.records_lost = lost;
	live_set_reach(w->live, &reach);
}

static void on_turn(void *arg)
{
	struct watch *w = arg;
	uint64_t until_ns = clock_mono_ns() + TURN_NS;
	bool old = any_reading(w), more;
	size_t i;

	if (old)
		live_restoring(w->live, true);
	for (i = 0; i < w->n; i++)
		w->journals[i].at_end = false;
	do {
		more = false;
		for (i = 0; i < w->n; i++) {
			if (!w->journals[i].at_end)
				read_some(w, &w->journals[i]);
			more |= !w->journals[i].at_end;
		}
	} while (more && clock_mono_ns() < until_ns);
	if (old)
		live_restoring(w->live, false);
	set_reach(w);
	loop_timer_set(w->timer, more ? 0 : WATCH_POLL_MS);
}

static void report_no_memory(struct watch *w)
{
	if (w->no_memory && !w->reported)
		log_line("page: out of memory: from now on the sums are too small");
	w->reported = w->no_memory;
}

void watch_tick(struct watch *w)
{
	bool all = true;
	size_t i;

	for (i = 0; i < w->n; i++) {
		struct watch_journal *j = &w->journals[i];

		tail_look(&j->tail);
		watch_dropped(w, j);
		if (is_reading(j))
			framefile_sizes(j->tail.folder, &j->size_bytes);
		all &= j->read && !j->error;
	}
	if (all)
		w->held[w->ticks++ % WATCH_HOLD] = lost_now(w);
	set_reach(w);
	report_no_memory(w);
}

bool watch_is_settled(const struct watch *w)
{
	return !any_reading(w);
}

static int add_journal(struct watch *w, const char *dir)
{
	struct watch_journal *j = &w->journals[w->n++];

	j->dir = dir;
	return tail_init(&j->tail, dir);
}

struct watch *watch_new(struct loop *loop, struct live *live, const char *dir,
			const char *const *more)
{
	struct watch *w = calloc(1, sizeof(*w));
	size_t n = 1, i;
	int err;

	for (i = 0; more && more[i]; i++)
		n++;
	if (!w)
		return NULL;
	w->live = live;
	w->journals = calloc(n, sizeof(*w->journals));
	w->timer = loop_timer_new(loop, on_turn, w);
	err = w->journals && w->timer ? auth_random(w->seed, sizeof(w->seed)) : -ENOMEM;
	if (!err)
		err = add_journal(w, dir);
	for (i = 0; !err && i + 1 < n; i++)
		err = add_journal(w, more[i]);
	if (err) {
		watch_free(w);
		return NULL;
	}
	live_watch(live);
	watch_tick(w);
	loop_timer_set(w->timer, 0);
	return w;
}

void watch_free(struct watch *w)
{
	struct watch_stream *s;
	size_t at = 0, i;

	if (!w)
		return;
	while ((s = table_next(&w->streams, &at)))
		ranges_release(&s->records);
	for (i = 0; i < w->n; i++)
		tail_close(&w->journals[i].tail);
	free(w->journals);
	loop_timer_free(w->timer);
	table_release(&w->streams);
	table_release(&w->workers);
	arena_release(&w->arena);
	buf_release(&w->scratch);
	buf_release(&w->starts);
	free(w);
}
