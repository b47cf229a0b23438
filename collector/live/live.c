/* SPDX-License-Identifier: BSD-3-Clause */
/* live.c - the workers of the live aggregates. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/live/live_parts.h"
#include "collector/model/lost.h"
#include "common/auth.h"
#include "common/hash.h"
#include "common/log.h"

/* Workers */

static bool same_id(const void *seen, const void *id)
{
	return !memcmp(((const struct live_seen *)seen)->id, id, CREMA_WORKER_ID_BYTES);
}

static struct live_seen *find_seen(const struct live *live, const uint8_t *id)
{
	return table_find(&live->seen, hash_worker(id, live->seed), same_id, id);
}

static struct live_worker *new_worker(struct live *live, const uint8_t *id)
{
	struct live_seen *seen = arena_get(&live->arena, sizeof(*seen));
	struct live_worker *w = seen ? calloc(1, sizeof(*w)) : NULL;

	if (!w)
		return NULL;
	memcpy(seen->id, id, sizeof(seen->id));
	seen->worker = w;
	if (table_add(&live->seen, hash_worker(id, live->seed), seen)) {
		free(w);
		return NULL;
	}
	memcpy(w->id, id, sizeof(w->id));
	w->heard_ms = live_now_ms();
	w->connections = live->watching;
	w->cpu_percent = w->rss_bytes = w->running = w->threads = w->limit_bytes = (double)NAN;
	w->executing = w->ready = w->long_running = w->fetching = (double)NAN;
	w->managed = w->spilled = (double)NAN;
	w->next = live->workers;
	live->workers = w;
	live->worker_count++;
	return w;
}

static void came_back(struct live *live, struct live_seen *seen)
{
	seen->lost = false;
	live->lost_gone--;
	if (!live->returned)
		log_line("collect: a worker came back after a long silence: the live numbers omit "
			 "what it does from now on; the journal is complete");
	live->returned = true;
}

struct live_worker *live_worker(struct live *live, const uint8_t *id, bool *folded)
{
	struct live_seen *seen = find_seen(live, id);

	*folded = seen && !seen->worker;
	if (!seen)
		return new_worker(live, id);
	if (seen->lost)
		came_back(live, seen);
	return seen->worker;
}

int live_add_folded(struct live *live, const uint8_t *id, bool lost)
{
	struct live_seen *seen =
		find_seen(live, id) ? NULL : arena_get(&live->arena, sizeof(*seen));

	if (!seen)
		return find_seen(live, id) ? -EBADMSG : -ENOMEM;
	*seen = (struct live_seen){.lost = lost};
	memcpy(seen->id, id, sizeof(seen->id));
	if (table_add(&live->seen, hash_worker(id, live->seed), seen))
		return -ENOMEM;
	live->lost_gone += lost;
	return 0;
}

uint64_t live_lost(const struct live_worker *w)
{
	return lost_records(w->missing, w->row.value[LIVE_records_refused]);
}

uint64_t live_refused(const struct live *live, const uint8_t *id)
{
	const struct live_seen *seen = find_seen(live, id);

	if (!seen)
		return 0;
	return seen->worker ? seen->worker->row.value[LIVE_records_refused] : seen->refused;
}

static void free_worker(struct live *live, struct live_worker *w)
{
	live_calls_forget(live, w);
	ranges_release(&w->ended);
	free(w);
}

/* Removes the worker at *at; the sums already include its counts. */
static void forget(struct live *live, struct live_worker **at, bool lost)
{
	struct live_worker *w = *at;
	struct live_seen *seen = find_seen(live, w->id);

	*at = w->next;
	seen->worker = NULL;
	seen->lost = lost;
	seen->refused = w->row.value[LIVE_records_refused];
	live->records_lost += live_lost(w);
	live->with_notes_gone += w->notes;
	live->worker_count--;
	free_worker(live, w);
}

void live_fold_lost(struct live *live)
{
	struct live_worker **at, *w;
	int64_t now = live_now_ms();
	size_t lost = 0;

	if (live_keeps_all(live))
		return;
	/* The newest come first in the list. */
	for (at = &live->workers; (w = *at);) {
		if ((w->connections > 0 && !live->watching) || live_state(w, now) != LIVE_LOST ||
		    ++lost <= LIVE_LOST_KEPT) {
			at = &w->next;
			continue;
		}
		forget(live, at, true);
		live->lost_gone++;
	}
}

bool live_full(struct live *live, const uint8_t *id)
{
	return live && live->worker_count >= LIVE_WORKERS && !find_seen(live, id);
}

void live_fold(struct live *live)
{
	struct live_worker **at = &live->workers, *w;

	if (live->gone_count <= LIVE_GONE_KEPT || live_keeps_all(live))
		return;
	while ((w = *at)) {
		if (!w->goodbye || w->goodbye_order + LIVE_GONE_KEPT >= live->gone_order) {
			at = &w->next;
			continue;
		}
		forget(live, at, false);
		live->gone_count--;
	}
}

/* Lifecycle */

struct live *live_new(void)
{
	struct live *live = calloc(1, sizeof(*live));

	if (!live)
		return NULL;
	live->prefix = calloc(LIVE_PREFIXES + 1, sizeof(*live->prefix));
	if (!live->prefix || auth_random(live->seed, sizeof(live->seed))) {
		live_free(live);
		return NULL;
	}
	memcpy(live->prefix[LIVE_PREFIXES].name, "other", 6);
	live->since = (double)NAN;
	return live;
}

static void free_workers(struct live *live)
{
	struct live_worker *w;

	while ((w = live->workers)) {
		live->workers = w->next;
		free_worker(live, w);
	}
	table_release(&live->seen);
	arena_release(&live->arena);
}

void live_clear(struct live *live)
{
	struct live empty = {.seed = {live->seed[0], live->seed[1]},
			     .prefix = live->prefix,
			     .restoring = live->restoring,
			     .watching = live->watching,
			     .since = (double)NAN};

	free_workers(live);
	memset(live->prefix, 0, (LIVE_PREFIXES + 1) * sizeof(*live->prefix));
	memcpy(live->prefix[LIVE_PREFIXES].name, "other", 6);
	*live = empty;
}

void live_free(struct live *live)
{
	if (!live)
		return;
	free_workers(live);
	free(live->prefix);
	free(live);
}
