/* SPDX-License-Identifier: BSD-3-Clause */
/* model_feed.c - turns frames into messages, and task messages into attempts. */
#include "collector/model/model.h"

#include <errno.h>
#include <string.h>

#include "collector/model/dropped.h"
#include "collector/model/footer.h"

/*
 * Workers number their attempts from 1. They are found by pages of numbers, which takes a tenth of
 * a table with an entry for each.
 */
#define PAGE_SHIFT 4u

struct attempt_page {
	const struct worker *worker;
	uint64_t page;
	struct attempt *attempt[1u << PAGE_SHIFT];
};

static bool same_page(const void *item, const void *key)
{
	const struct attempt_page *a = item, *b = key;

	return a->worker == b->worker && a->page == b->page;
}

static uint64_t page_hash(const struct worker *w, uint64_t page)
{
	return hash_pair(w->place, page);
}

static struct attempt_page *page_find(const struct model *m, const struct worker *w, uint64_t page,
				      uint64_t hash)
{
	struct attempt_page key = {.worker = w, .page = page};

	if (m->recent_page && same_page(m->recent_page, &key))
		return m->recent_page;
	return table_find(&m->attempt_table, hash, same_page, &key);
}

static struct attempt_page *page_of(struct model *m, struct worker *w, uint64_t page)
{
	uint64_t hash = page_hash(w, page);
	struct attempt_page *p = page_find(m, w, page, hash);

	if (p)
		return m->recent_page = p;
	p = arena_get(&m->page_arena, sizeof(*p));
	if (!p || table_add(&m->attempt_table, hash, p))
		return NULL;
	p->worker = w;
	p->page = page;
	return m->recent_page = p;
}

static bool attempt_is_known(const struct model *m, const struct worker *w, uint64_t number)
{
	uint64_t page = number >> PAGE_SHIFT;
	const struct attempt_page *p = page_find(m, w, page, page_hash(w, page));

	return p && p->attempt[number & ((1u << PAGE_SHIFT) - 1)];
}

static struct attempt *attempt_of(struct model *m, struct worker *w, uint64_t number)
{
	struct attempt_page *p = page_of(m, w, number >> PAGE_SHIFT);
	struct attempt **in_page, **at, *a;

	in_page = p ? &p->attempt[number & ((1u << PAGE_SHIFT) - 1)] : NULL;
	if (in_page && *in_page)
		return *in_page;
	a = in_page ? arena_bytes(&m->attempt_arena, sizeof(*a))
		    : NULL; /* all of the same aligned type */
	at = a ? ARRAY_NEW(&m->attempts) : NULL;
	if (!at) {
		m->error = -ENOMEM;
		return NULL;
	}
	*in_page = *at = a;
	a->worker = w;
	a->attempt = number;
	a->segment = m->segment;
	return a;
}

/* Keys differ, so they are not interned: each record of an attempt has the same one. */
static const char *keep_key(struct model *m, const char *had, struct text t)
{
	char *key;

	if (had && strlen(had) == t.len && !memcmp(had, t.ptr, t.len))
		return had;
	key = arena_bytes(&m->bytes, t.len + 1);
	if (!key) {
		m->error = -ENOMEM;
		return NULL;
	}
	memcpy(key, t.ptr, t.len);
	key[t.len] = 0;
	return key;
}

static const char *keep_text(struct model *m, enum task_field field, const char *had, struct text t)
{
	return field == TASK_F_key ? keep_key(m, had, t) : model_task_text(m, field, t);
}

#define COPY_u64(name) (r->name)
#define COPY_i64(name) (r->name)
#define COPY_f64(name) (r->name)
#define COPY_str(name) keep_text(m, TASK_F_##name, d.name, r->name)

static uint32_t short_rev(uint64_t rev)
{
	return rev < UINT32_MAX ? (uint32_t)rev : UINT32_MAX;
}

/* Clears what the newest record no longer has: the file system whose charges are unknown, as its
 * numbers are newer, and the chunk, as what a task reads first need not be its chunk. */
static void forget(struct attempt_detail *d, const struct task_record *r)
{
#define FORGET(name)                                                                               \
	if (!TASK_KNOWN(r, name)) {                                                                \
		d->name = 0;                                                                       \
		d->known &= ~(UINT64_C(1) << TASK_F_##name);                                       \
	}
	FORGET(fs_unknown)
	if (!(r->flags & CREMA_TASK_READS_DIFFER))
		return;
	FORGET(dataset)
	FORGET(filename)
	FORGET(treename)
	FORGET(entrystart)
	FORGET(entrystop)
	FORGET(events)
#undef FORGET
}

/*
 * A later record with less (from an agent that found only part of a slot) must not remove the
 * identity from an earlier one. Numbers are always those of the newest record.
 */
static int attempt_take(struct model *m, struct attempt *a, const struct task_record *r)
{
	struct attempt_detail d;

	attempt_detail(a, &d);
	a->rev = short_rev(r->rev);
	a->ended = r->type == CREMA_MSG_TASK_END || r->type == CREMA_MSG_TASK_AMEND;
#define FIELD(name, type, help)                                                                    \
	if (TASK_KNOWN(r, name)) {                                                                 \
		d.name = COPY_##type(name);                                                        \
		d.known |= UINT64_C(1) << TASK_F_##name;                                           \
	}
#include "task_fields.def"
#undef FIELD
	forget(&d, r);
	memcpy(d.c.own, r->own, sizeof(d.c.own));
	memcpy(d.c.pool, r->pool, sizeof(d.c.pool));
	memcpy(d.c.count, r->count, sizeof(d.c.count));
	d.c.own_known = r->own_known;
	d.c.pool_known = r->pool_known;
	d.c.count_known = r->count_known;
	return attempt_keep(m, a, &d);
}

static bool begins(struct text t, const char *with)
{
	return t.len >= strlen(with) && !memcmp(t.ptr, with, strlen(with));
}

/* coffea.dataset_tools.preprocess() is a separate graph: steps of each file, joined by dataset. */
static bool makes_steps(const struct task_record *r)
{
	if (!TASK_KNOWN(r, prefix))
		return false;
	return text_is(r->prefix, "get-steps") ||
	       (begins(r->prefix, "preprocess-") && text_is(r->function, "pipe"));
}

static int feed_record(struct model *m, struct worker *w, struct task_record *r)
{
	struct attempt *a;

	if (!TASK_KNOWN(r, attempt)) {
		m->records_bad++;
		return 0;
	}
	if (TASK_KNOWN(r, start_boot_ns)) {
		worker_sign(w, r->start_boot_ns);
		if (TASK_KNOWN(r, wall_ns) && r->wall_ns < INT64_MAX)
			worker_sign(w, r->start_boot_ns + r->wall_ns);
	}
	if (makes_steps(r))
		TASK_SET(r, flags, r->flags | CREMA_TASK_PREPROCESSING);
	if (TASK_KNOWN(r, span) && span_part_feed(m, r))
		return -ENOMEM;
	if (m->selection && !selection_takes_task(m, w, r, attempt_is_known(m, w, r->attempt)))
		return m->error;
	selection_slim(m->selection, r);
	a = attempt_of(m, w, r->attempt);
	if (!a)
		return -ENOMEM;
	/* Two records of one revision are equal, but an end outranks progress of the same
	 * revision. */
	if (a->known && (short_rev(r->rev) < a->rev || (short_rev(r->rev) == a->rev && a->ended)))
		return 0;
	return attempt_take(m, a, r) ? -ENOMEM : m->error;
}

static int feed_task(struct model *m, struct worker *w, const struct stream *s,
		     const msgpack_object *message)
{
	struct task_record r;

	if (s->has_map && !task_decode(&r, &s->map, message))
		return feed_record(m, w, &r);
	m->records_bad++;
	return 0;
}

static bool message_type(const msgpack_object *message, uint64_t *type)
{
	return message->type == MSGPACK_OBJECT_ARRAY && message->via.array.size >= 2 &&
	       object_u64(&message->via.array.ptr[0], type);
}

static int feed_message(struct model *m, struct worker *w, const struct stream *s,
			const msgpack_object *message)
{
	const msgpack_object *item;
	uint64_t type, boot_ns = 0;
	struct text json;

	if (!message_type(message, &type)) {
		m->records_bad++;
		return 0;
	}
	item = message->via.array.ptr;
	if (task_is_message(type))
		return feed_task(m, w, s, message);
	if (!selection_takes_message(m, w, type, &item[1]))
		return 0;
	if (type == CREMA_MSG_DASK) {
		if (message->via.array.size < 3 || !object_u64(&item[1], &boot_ns) ||
		    !object_text(&item[2], &json)) {
			m->records_bad++;
			return 0;
		}
		return model_feed_dask(m, w, boot_ns, json);
	}
	return model_feed_map(m, w, type, &item[1]);
}

/* All messages of a payload that unpack_check() has passed, or only its tasks'. */
static int feed_messages(struct model *m, struct worker *w, const struct stream *s,
			 const unsigned char *raw, size_t n, bool tasks_only)
{
	struct unpack u = {0};
	struct task_record r;
	uint32_t items, i;
	uint64_t type;
	size_t at, used, left_out;
	int rc = unpack_array(raw, n, &items, &at);

	for (i = 0; !rc && i < items; i++, at += used, m->fed.record++) {
		left_out = m->left_out;
		used = selection_skips_task(m->selection, raw + at, n - at);
		if (used)
			continue;
		used = s->has_map ? task_read(&r, &s->map, raw + at, n - at) : 0;
		if (used) {
			rc = feed_record(m, w, &r);
			if (!rc && m->witness)
				rc = m->witness->saw(m->witness, w, s, &r, m->left_out == left_out,
						     raw + at, used);
			continue;
		}
		rc = unpack_next(&u, raw + at, n - at, &used);
		if (!rc && (!tasks_only || (message_type(&u.root, &type) && task_is_message(type))))
			rc = feed_message(m, w, s, &u.root);
		if (!rc && m->witness)
			rc = m->witness->saw(m->witness, w, s, NULL, false, raw + at, used);
	}
	unpack_release(&u);
	return rc;
}

static bool is_array(const unsigned char *raw, size_t n)
{
	uint32_t items;
	size_t used;

	return !unpack_array(raw, n, &items, &used);
}

static int feed_data(struct model *m, struct worker *w, const struct crema_frame_header *head,
		     const unsigned char *raw, size_t n)
{
	struct stream *s = worker_stream(w, head->stream);
	int rc;

	if (!s)
		return -ENOMEM;
	if (head->type ==
	    CREMA_FRAME_CARRIED) /* the latest messages from frames that were dropped */
		return is_array(raw, n) ? feed_messages(m, w, s, raw, n, false) : 0;
	if (!is_array(raw, n)) {
		m->records_bad++;
		return 0;
	}
	rc = stream_received(s, head->first_seq, head->first_seq + head->count);
	m->fed = (struct row_version){0, head->stream, head->first_seq};
	return rc ? rc : feed_messages(m, w, s, raw, n, false);
}

int model_feed_tasks(void *model, const struct crema_frame_header *head, const unsigned char *raw,
		     size_t raw_bytes)
{
	struct model *m = model;
	struct worker *w = model_find_worker(m, head->worker);
	const struct stream *s;
	int rc;

	if (head->type != CREMA_FRAME_DATA || !w || !raw_bytes || unpack_check(raw, raw_bytes) ||
	    !is_array(raw, raw_bytes))
		return 0;
	s = worker_stream(w, head->stream);
	rc = s ? feed_messages(m, w, s, raw, raw_bytes, true) : -ENOMEM;
	return rc ? rc : m->error;
}

static bool is_known(const struct crema_frame_header *head)
{
	switch (head->type) {
	case CREMA_FRAME_CARRIED:
		return head->first_seq != 0; /* else the worker ended in dropped segments */
	case CREMA_FRAME_HELLO:
	case CREMA_FRAME_DATA:
	case CREMA_FRAME_NOTE:
	case CREMA_FRAME_DROPPED:
	case CREMA_FRAME_DROPPED_RUN:
	case CREMA_FRAME_CARRY:
	case CREMA_FRAME_RUN_TOTALS:
		return true;
	default:
		return false;
	}
}

/* A frame that is one map: the collector's, or a hello. */
static int feed_tree(struct model *m, const struct crema_frame_header *head,
		     const msgpack_object *root)
{
	struct worker *w;
	uint64_t note;

	if (head->type == CREMA_FRAME_NOTE) {
		note = get_u64(root, "time_ns", 0);
		if (note > m->last_note_ns)
			m->last_note_ns = note;
		return 0;
	}
	if ((head->type >= CREMA_FRAME_DROPPED && head->type <= CREMA_FRAME_CARRY) ||
	    head->type == CREMA_FRAME_RUN_TOTALS)
		return dropped_feed(m, head, root);
	w = model_worker(m, head->worker);
	if (!w)
		return -ENOMEM;
	w->last_segment = m->segment;
	return model_feed_hello(m, w, head->stream, root);
}

int model_feed(void *model, const struct crema_frame_header *head, const unsigned char *raw,
	       size_t raw_bytes)
{
	bool messages = head->type == CREMA_FRAME_DATA || head->type == CREMA_FRAME_CARRIED;
	struct model *m = model;
	struct worker *w;
	struct unpack u = {0};
	int rc;

	m->frames++;
	if (!is_known(head))
		return 0;
	rc = messages ? unpack_check(raw, raw_bytes) : unpack_open(&u, raw, raw_bytes);
	if (rc == -ENOMEM)
		return rc;
	if (rc || !raw_bytes) {
		m->records_bad++;
		return 0;
	}
	if (messages) {
		w = model_worker(m, head->worker);
		if (w)
			w->last_segment = m->segment;
		rc = w ? feed_data(m, w, head, raw, raw_bytes) : -ENOMEM;
	} else {
		rc = feed_tree(m, head, &u.root);
		unpack_release(&u);
	}
	return rc ? rc : m->error;
}
