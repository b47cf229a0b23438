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
	live->since_work = live->before;
}

static struct live_work work_now(const struct live *live)
{
	return (struct live_work){live->total[LIVE_tasks_done], live->events,
				  live_layer(live->total, CREMA_L_read)};
}

static void add_change(struct live_work *to, const struct live_work *from,
		       const struct live_work *now)
{
	to->done += now->done - from->done;
	to->events += now->events - from->events;
	to->read += now->read - from->read;
}

/* Old results do not count as work. */
static void leave_out_old(struct live *live)
{
	struct live_work now = work_now(live);

	add_change(&live->before, &live->old, &now);
	add_change(&live->since_work, &live->old, &now);
}

void live_tick(struct live *live)
{
	uint64_t done = live->total[LIVE_tasks_done];
	struct live_progress progress;
	const struct live_worker *w;
	int64_t now = live_now_ms();
	bool busy = done != live->before.done;

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
	live->before = work_now(live);
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
	const struct live_fields *fields = frame->fields;
	uint64_t number = head->first_seq;
	uint32_t i, end;
	int err = 0;

	if (!w)
		return folded ? 0 : -ENOMEM;
	w->missing += frame->lost;
	if (!live->restoring)
		w->heard_ms = live_now_ms();
	if (!fields)
		fields = live_fields_of(w, head->stream);
	for (i = 0; i < head->count && !err; i++, number++) {
		end = i + 1 < head->count ? frame->starts[i + 1] : head->raw_bytes;
		if (number >= frame->from && !(frame->known && ranges_has(frame->known, number)))
			err = live_message(live, w, fields, frame->raw + frame->starts[i],
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
	if (restoring)
		live->old = work_now(live);
	for (w = live->workers; w && !restoring; w = w->next) {
		last = (int64_t)((w->hello_real_ns + (w->last_boot_ns - w->hello_boot_ns)) /
				 1000000u);
		age = real - last;
		w->heard_ms = now - (age < 0 ? 0 : age);
	}
	if (!restoring)
		leave_out_old(live);
}

void live_watch(struct live *live)
{
	live->watching = true;
}

void live_set_reach(struct live *live, const struct live_reach *reach)
{
	live->reach = *reach;
	live->records_lost = reach->records_lost;
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
