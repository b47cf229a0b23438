/* SPDX-License-Identifier: BSD-3-Clause */
/* live_feed.c - handles messages, connections, and each second. */
#include <errno.h>
#include <math.h>

#include "collector/live/live_parts.h"
#include "common/clock.h"

#define FOLD_EVERY 256u

/* Work began after a pause: earlier results do not belong to this activity. */
static void begin_activity(struct live *live)
{
	live->since = (double)clock_real_ns() / 1e9;
	live->since_done = live->done_before;
	live->since_events = live->events_before;
	live->since_read = live->read_before;
}

/* Earlier results do not count as work. */
static void tick_from_here(struct live *live)
{
	live->done_before = live->total[LIVE_tasks_done];
	live->events_before = live->events;
	live->read_before = live_layer(live->total, CREMA_L_read);
}

void live_tick(struct live *live)
{
	uint64_t done = live->total[LIVE_tasks_done];
	struct live_progress progress;
	const struct live_worker *w;
	int64_t now = live_now_ms();
	bool busy = done != live->done_before;

	live_progress_at(live, now, &progress); /* updates its rate */
	live_watch_edges(live, now);
	for (w = live->workers; w && !busy; w = w->next)
		busy = w->running > 0 && live_state(w, now) == LIVE_CONNECTED;
	if (busy) {
		if (isnan(live->since))
			begin_activity(live);
		live->busy_ms = now;
	} else if (now - live->busy_ms > LIVE_IDLE_MS) {
		live->since = (double)NAN;
	}
	tick_from_here(live);
	live_fold(live);
	live_fold_lost(live);
}

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
		tick_from_here(live);
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
