/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live_task.c - reads the end of an attempt from the bytes: of its hundred values it only visits
 * those up to the last one needed.
 */
#include <errno.h>
#include <string.h>

#include "collector/live/live_parts.h"
#include "common/walk.h"

struct task_end {
	uint64_t attempt, wall_ns, events, flags;
	struct text status, prefix;
	bool has_attempt;
};

struct live_fields *live_fields_of(struct live_worker *w, uint64_t stream)
{
	size_t i;

	for (i = 0; i < LIVE_STREAMS; i++) {
		if (w->fields[i].set && w->fields[i].stream == stream)
			return &w->fields[i];
	}
	return NULL;
}

/* Fields beyond the message's end, or of another type, stay unknown. */
static void read_end(const struct live_fields *f, const uint8_t *p, const uint8_t *end,
		     struct task_end *e)
{
	struct walk_item v;
	bool wanted;
	int i;

	for (i = 0; i <= f->last; i++, p += v.bytes) {
		wanted = i >= 64 || (f->wanted >> i & 1u);
		v.bytes = !wanted && p < end ? walk_size[*p] : 0;
		if (v.bytes && v.bytes <= (size_t)(end - p))
			continue;
		if (!walk_item(p, (size_t)(end - p), &v) || v.kind >= WALK_ARRAY)
			return;
		if (!wanted)
			continue;
		if (v.kind == WALK_NUMBER) {
			if (i == f->attempt) {
				e->attempt = v.number;
				e->has_attempt = true;
			} else if (i == f->wall) {
				e->wall_ns = v.number;
			} else if (i == f->events) {
				e->events = v.number;
			} else if (i == f->flags) {
				e->flags = v.number;
			}
		} else if (v.kind == WALK_TEXT) {
			struct text text = {(const char *)p + v.bytes - v.number, v.number};

			if (i == f->status)
				e->status = text;
			else if (i == f->prefix)
				e->prefix = text;
		}
	}
}

static enum live_status status_of(struct text t)
{
	if (text_is(t, "ok"))
		return LIVE_OK;
	if (text_is(t, "erred"))
		return LIVE_ERRED;
	return text_is(t, "killed") ? LIVE_KILLED : LIVE_OTHER;
}

/*
 * Records the attempt: 1, 0 if it was recorded before, or -ENOMEM. Gaps are running attempts. If
 * there are more than possible, records were lost: the oldest gap is dropped.
 */
static int remember(struct ranges *ended, uint64_t attempt)
{
	uint64_t before;
	int err;

	if (ended->n >= LIVE_ATTEMPT_GAPS)
		ranges_add(ended, ended->v[0].to, ended->v[1].from, LIVE_ATTEMPT_GAPS);
	before = ended->bytes;
	err = ranges_add(ended, attempt, attempt + 1, LIVE_ATTEMPT_GAPS);
	return err ? err : ended->bytes != before;
}

int live_task_end(struct live *live, struct live_worker *w, const struct live_fields *f,
		  const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n;
	struct live_prefix *prefix;
	enum live_status status;
	struct task_end e = {0};
	struct walk_item rev;
	int rc;

	if (f && walk_item(p, n, &rev) && rev.kind < WALK_ARRAY)
		read_end(f, p + rev.bytes, end, &e);
	if (!e.has_attempt || e.attempt >= UINT64_MAX) {
		live->records_bad++;
		return 0;
	}
	/* An agent that took over from another one may send it again. */
	rc = remember(&w->ended, e.attempt);
	if (rc <= 0)
		return rc;
	status = status_of(e.status);
	prefix = live_prefix_of(live, e.prefix);
	prefix->ended[status]++;
	prefix->wall_ns += e.wall_ns;
	prefix->has_chunks |= (e.flags & CREMA_TASK_CHUNK) != 0;
	live->ended[status]++;
	live->chunks += status == LIVE_OK && (e.flags & CREMA_TASK_CHUNK);
	if (status == LIVE_OK) {
		live->events += e.events;
		w->events += e.events;
	}
	return 0;
}
