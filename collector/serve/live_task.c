/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live_task.c - the end of an attempt, read from the bytes: of its hundred values only those up to
 * the last one that is wanted are stepped over.
 */
#include <errno.h>
#include <string.h>

#include "collector/serve/live_parts.h"
#include "common/value_size.h"

/* One value that is no container; [p, end) holds it whole. kind 0: nil or anything else. */
struct value_at {
	enum { OTHER, NUMBER, TEXT } kind;
	uint64_t number;
	struct text text;
};

static uint64_t big_endian(const uint8_t *p, unsigned int n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

/* Bytes of the value at p, or 0: no plain value, or it is cut. */
static size_t value_at(const uint8_t *p, const uint8_t *end, struct value_at *v)
{
	static const uint8_t fixed[32] = {
		[0x00] = 1, [0x02] = 1, [0x03] = 1, [0x0a] = 5, [0x0b] = 9,  [0x0c] = 2,
		[0x0d] = 3, [0x0e] = 5, [0x0f] = 9, [0x10] = 2, [0x11] = 3,  [0x12] = 5,
		[0x13] = 9, [0x14] = 3, [0x15] = 4, [0x16] = 6, [0x17] = 10, [0x18] = 18,
	};
	static const uint8_t sized[32] = {
		[0x04] = 1, [0x05] = 2, [0x06] = 4, [0x19] = 1, [0x1a] = 2, [0x1b] = 4,
	};
	size_t left = (size_t)(end - p), n, head;
	uint8_t t;

	v->kind = OTHER;
	if (!left)
		return 0;
	t = *p;
	if (t < 0x80) {
		v->kind = NUMBER;
		v->number = t;
		return 1;
	}
	if (t >= 0xe0)
		return 1;
	if (t < 0xa0)
		return 0; /* a container */
	if (t < 0xc0) {
		head = 1;
		n = t & 0x1fu;
	} else if (fixed[t - 0xc0]) {
		n = fixed[t - 0xc0];
		if (n > left)
			return 0;
		if (t >= 0xcc && t <= 0xcf) {
			v->kind = NUMBER;
			v->number = big_endian(p + 1, (unsigned int)n - 1);
		}
		return n;
	} else if (sized[t - 0xc0]) {
		head = 1u + sized[t - 0xc0];
		if (head > left)
			return 0;
		n = (size_t)big_endian(p + 1, sized[t - 0xc0]);
	} else {
		return 0;
	}
	if (n > left - head)
		return 0;
	if (t < 0xc0 || t >= 0xd9) {
		v->kind = TEXT;
		v->text = (struct text){(const char *)p + head, n};
	}
	return head + n;
}

struct end {
	uint64_t attempt, wall_ns, events, flags;
	struct text status, prefix;
	bool has_attempt;
};

/* Fields beyond the message's end, or of another type, stay as they are: not known. */
static void read_end(const struct live_fields *f, const uint8_t *p, const uint8_t *end,
		     struct end *e)
{
	struct value_at v;
	size_t n;
	int i;

	for (i = 0; i <= f->last; i++, p += n) {
		if (i < 64 && !(f->wanted >> i & 1u) && p < end && value_size[*p] &&
		    value_size[*p] <= end - p) {
			n = value_size[*p];
			continue;
		}
		n = value_at(p, end, &v);
		if (!n)
			return;
		if (v.kind == NUMBER) {
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
		} else if (v.kind == TEXT) {
			if (i == f->status)
				e->status = v.text;
			else if (i == f->prefix)
				e->prefix = v.text;
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
 * Remembers the attempt: 1, 0 if it was told before, or -ENOMEM. Holes are attempts under way;
 * where there are more than there can be, records were lost: the oldest hole is given up.
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

int live_task_end(struct live *live, struct live_worker *w, uint64_t stream, const uint8_t *p,
		  size_t n)
{
	const struct live_fields *f = live_fields_of(w, stream);
	const uint8_t *end = p + n;
	struct live_prefix *prefix;
	enum live_status status;
	struct end e = {0};
	struct value_at rev;
	size_t used;
	int rc;

	used = f ? value_at(p, end, &rev) : 0;
	if (used)
		read_end(f, p + used, end, &e);
	if (!e.has_attempt || e.attempt >= UINT64_MAX) {
		live->records_bad++;
		return 0;
	}
	/* An agent that took over from another one may tell it again. */
	rc = remember(&w->ended, e.attempt);
	if (rc <= 0)
		return rc;
	status = status_of(e.status);
	prefix = live_prefix_of(live, e.prefix);
	prefix->ended[status]++;
	prefix->wall_ns += e.wall_ns;
	live->ended[status]++;
	live->chunks += status == LIVE_OK && (e.flags & CREMA_TASK_CHUNK);
	if (status == LIVE_OK) {
		live->events += e.events;
		w->events += e.events;
	}
	return 0;
}
