/* SPDX-License-Identifier: BSD-3-Clause */
/* live.c - the workers and prefixes of the live aggregates. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collector/serve/live_parts.h"
#include "common/auth.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/utf8.h"

#define SLOTS_MIN 64u
#define FOLD_EVERY 256u

int64_t live_now_ms(void)
{
	return (int64_t)(clock_mono_ns() / 1000000u);
}

/* Names */

void live_text(char *dst, size_t size, struct text text)
{
	const char *p = text.ptr;
	size_t left = p ? text.len : 0, used = 0, len, put;
	uint32_t c;
	bool shown;

	for (; left; p += len, left -= len, used += put) {
		len = utf8_take(p, left, &c);
		shown = len && utf8_is_shown(c);
		put = shown ? len : 1;
		if (used + put >= size)
			break;
		memcpy(dst + used, shown ? p : "?", put);
		len = len ? len : 1;
	}
	dst[used] = '\0';
}

static struct live_prefix *find_prefix(struct live *live, const char *name)
{
	size_t i, at;

	for (i = 0; i < live->prefixes; i++) {
		at = (live->prefix_hint + i) % live->prefixes;
		if (!strcmp(live->prefix[at].name, name)) {
			live->prefix_hint = at;
			return &live->prefix[at];
		}
	}
	if (live->prefixes == LIVE_PREFIXES || !strcmp(name, live->prefix[LIVE_PREFIXES].name))
		return &live->prefix[LIVE_PREFIXES];
	at = live->prefixes++;
	memcpy(live->prefix[at].name, name, strlen(name) + 1);
	return &live->prefix[at];
}

struct live_prefix *live_prefix_of(struct live *live, struct text text)
{
	char name[LIVE_PREFIX_BYTES + 1];
	struct live_prefix *last = &live->prefix[live->prefix_hint];

	/* Mostly the one before: a name that is in the table is its own printable form. */
	if (live->prefixes && text.len && text_is(text, last->name))
		return last;
	live_text(name, sizeof(name), text);
	return find_prefix(live, *name ? name : "(none)");
}

size_t live_prefixes(const struct live *live, const struct live_prefix **out)
{
	size_t i, n = 0;

	for (i = 0; i < live->prefixes; i++)
		out[n++] = &live->prefix[i];
	out[n++] = &live->prefix[LIVE_PREFIXES];
	return n;
}

/* Workers */

static struct live_slot *slot_of(struct live *live, const uint8_t *id)
{
	size_t at = hash_worker(id, live->seed) & (live->slots - 1);

	while (live->slot[at].used && memcmp(live->slot[at].id, id, CREMA_WORKER_ID_BYTES) != 0)
		at = (at + 1) & (live->slots - 1);
	return &live->slot[at];
}

static int grow(struct live *live)
{
	struct live grown = {.slots = live->slots ? 2 * live->slots : SLOTS_MIN,
			     .seed = {live->seed[0], live->seed[1]}};
	size_t i;

	grown.slot = calloc(grown.slots, sizeof(*grown.slot));
	if (!grown.slot)
		return -1;
	for (i = 0; i < live->slots; i++) {
		if (live->slot[i].used)
			*slot_of(&grown, live->slot[i].id) = live->slot[i];
	}
	free(live->slot);
	live->slot = grown.slot;
	live->slots = grown.slots;
	return 0;
}

static struct live_worker *new_worker(struct live *live, struct live_slot *slot, const uint8_t *id)
{
	struct live_worker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	memcpy(w->id, id, sizeof(w->id));
	w->heard_ms = live_now_ms();
	w->cpu_percent = w->rss_bytes = w->running = w->threads = w->limit_bytes = (double)NAN;
	w->executing = w->ready = w->long_running = w->fetching = (double)NAN;
	w->managed = w->spilled = (double)NAN;
	w->next = live->workers;
	live->workers = w;
	live->worker_count++;
	live->used++;
	slot->used = true;
	slot->worker = w;
	memcpy(slot->id, id, sizeof(slot->id));
	return w;
}

static void came_back(struct live *live, struct live_slot *slot)
{
	slot->lost = false;
	live->lost_gone--;
	if (!live->returned)
		log_line("collect: a worker came back after it had been silent for long: the live "
			 "numbers leave out what it does now; the journal is complete");
	live->returned = true;
}

struct live_worker *live_worker(struct live *live, const uint8_t *id, bool *folded)
{
	struct live_slot *slot;

	*folded = false;
	if (2 * live->used >= live->slots && grow(live))
		return NULL;
	slot = slot_of(live, id);
	if (!slot->used)
		return new_worker(live, slot, id);
	*folded = !slot->worker;
	if (slot->lost)
		came_back(live, slot);
	return slot->worker;
}

static void free_worker(struct live_worker *w)
{
	ranges_release(&w->ended);
	free(w);
}

/* Takes the worker at *at out; what it counted is in the sums already. */
static void forget(struct live *live, struct live_worker **at, bool lost)
{
	struct live_worker *w = *at;
	struct live_slot *slot = slot_of(live, w->id);

	*at = w->next;
	slot->worker = NULL;
	slot->lost = lost;
	live->with_notes_gone += w->notes;
	live->worker_count--;
	free_worker(w);
}

void live_fold_lost(struct live *live)
{
	struct live_worker **at, *w;
	int64_t now = live_now_ms();
	size_t lost = 0;

	/* The newest come first in the list. */
	for (at = &live->workers; (w = *at);) {
		if (w->connections > 0 || live_state(w, now) != LIVE_LOST ||
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
	return live && live->worker_count >= LIVE_WORKERS && !slot_of(live, id)->used;
}

void live_fold(struct live *live)
{
	struct live_worker **at = &live->workers, *w;

	if (live->gone_count <= LIVE_GONE_KEPT)
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

/* Feeding */

int live_hello(struct live *live, const uint8_t *id, uint64_t stream, const msgpack_object *map)
{
	bool folded;
	struct live_worker *w = live_worker(live, id, &folded);

	if (!w)
		return folded ? 0 : -ENOMEM;
	live_rows_hello(w, stream, map);
	return 0;
}

int live_data(struct live *live, const struct live_frame *frame)
{
	const struct crema_frame_header *head = frame->head;
	bool folded;
	struct live_worker *w = live_worker(live, head->worker, &folded);
	uint32_t i, end;
	int err = 0;

	live->records_lost += frame->lost;
	if (!w)
		return folded ? 0 : -ENOMEM;
	if (!live->restoring)
		w->heard_ms = live_now_ms();
	for (i = 0; i < head->count && !err; i++) {
		end = i + 1 < head->count ? frame->starts[i + 1] : head->raw_bytes;
		if (head->first_seq + i >= frame->from)
			err = live_message(live, w, head->stream, frame->raw + frame->starts[i],
					   end - frame->starts[i]);
	}
	if (live->gone_count > LIVE_GONE_KEPT + FOLD_EVERY)
		live_fold(live);
	return err;
}

void live_restoring(struct live *live, bool restoring)
{
	int64_t now = live_now_ms(), real = (int64_t)(clock_real_ns() / 1000000u), last, age;
	struct live_worker *w;

	live->restoring = restoring;
	for (w = live->workers; w && !restoring; w = w->next) {
		last = (int64_t)((w->hello_real_ns + (w->last_boot_ns - w->hello_boot_ns)) /
				 1000000u);
		age = real - last;
		w->heard_ms = now - (age < 0 ? 0 : age);
	}
	if (!restoring)
		live_tick_from_here(live);
}

void live_connection(struct live *live, const uint8_t *id, int change)
{
	bool folded;
	struct live_worker *w = live_worker(live, id, &folded);

	if (!w)
		return;
	w->connections += change;
	if (change > 0)
		w->heard_ms = live_now_ms();
}

struct live *live_new(void)
{
	struct live *live = calloc(1, sizeof(*live));

	if (!live)
		return NULL;
	live->prefix = calloc(LIVE_PREFIXES + 1, sizeof(*live->prefix));
	if (!live->prefix || auth_random(live->seed, sizeof(live->seed)) || grow(live)) {
		live_free(live);
		return NULL;
	}
	memcpy(live->prefix[LIVE_PREFIXES].name, "other", 6);
	live->since = (double)NAN;
	return live;
}

void live_free(struct live *live)
{
	struct live_worker *w;

	if (!live)
		return;
	while ((w = live->workers)) {
		live->workers = w->next;
		free_worker(w);
	}
	free(live->slot);
	free(live->prefix);
	free(live);
}
