/* SPDX-License-Identifier: BSD-3-Clause */
/* model_feed.c - frames to messages, and task messages to attempts. */
#include "collector/model/model.h"

#include <errno.h>
#include <string.h>

struct attempt_key {
	const struct worker *worker;
	uint64_t attempt;
};

static bool same_attempt(const void *item, const void *key)
{
	const struct attempt *a = item;
	const struct attempt_key *k = key;

	return a->worker == k->worker && a->attempt == k->attempt;
}

static struct attempt *attempt_of(struct model *m, struct worker *w, uint64_t number)
{
	struct attempt_key key = {w, number};
	uint64_t hash = hash_pair(hash_bytes(1, w->id, sizeof(w->id)), number);
	struct attempt *a = table_find(&m->attempt_table, hash, same_attempt, &key);
	struct attempt **at;

	if (a)
		return a;
	a = arena_get(&m->arena, sizeof(*a));
	at = a ? ARRAY_NEW(&m->attempts) : NULL;
	if (!at || table_add(&m->attempt_table, hash, a)) {
		m->error = -ENOMEM;
		if (at)
			m->attempts.n--;
		return NULL;
	}
	*at = a;
	a->worker = w;
	a->attempt = number;
	return a;
}

#define COPY_u64(m, v) (v)
#define COPY_i64(m, v) (v)
#define COPY_f64(m, v) (v)
#define COPY_str(m, v) model_text(m, v)

/* What the first read of a task was of is not what the task was of. */
static void forget_chunk(struct attempt *a, const struct task_record *r)
{
#define FORGET(name)                                                                               \
	if (!TASK_KNOWN(r, name)) {                                                                \
		a->name = 0;                                                                       \
		a->known &= ~(UINT64_C(1) << TASK_F_##name);                                       \
	}
	FORGET(dataset)
	FORGET(filename)
	FORGET(treename)
	FORGET(entrystart)
	FORGET(entrystop)
	FORGET(events)
#undef FORGET
}

/*
 * A later record that knows less (an agent that found only part of a slot) must not take away what
 * an earlier one said about identity; numbers are always the newest record's.
 */
static void attempt_take(struct model *m, struct attempt *a, const struct task_record *r)
{
	a->rev = r->rev;
#define FIELD(name, type, help)                                                                    \
	if (TASK_KNOWN(r, name)) {                                                                 \
		a->name = COPY_##type(m, r->name);                                                 \
		a->known |= UINT64_C(1) << TASK_F_##name;                                          \
	}
#include "task_fields.def"
#undef FIELD
	if (r->flags & CREMA_TASK_READS_DIFFER)
		forget_chunk(a, r);
	memcpy(a->c.own, r->own, sizeof(a->c.own));
	memcpy(a->c.pool, r->pool, sizeof(a->c.pool));
	memcpy(a->c.count, r->count, sizeof(a->c.count));
	a->c.own_known = r->own_known;
	a->c.pool_known = r->pool_known;
	a->c.count_known = r->count_known;
	a->ended = r->type == CREMA_MSG_TASK_END || r->type == CREMA_MSG_TASK_AMEND;
}

static int feed_task(struct model *m, struct worker *w, const struct stream *s,
		     const msgpack_object *message)
{
	struct task_record r;
	struct attempt *a;

	if (!s->has_map || task_decode(&r, &s->map, message) || !TASK_KNOWN(&r, attempt)) {
		m->records_bad++;
		return 0;
	}
	a = attempt_of(m, w, r.attempt);
	if (!a)
		return -ENOMEM;
	if (TASK_KNOWN(&r, start_boot_ns)) {
		worker_sign(w, r.start_boot_ns);
		if (TASK_KNOWN(&r, wall_ns) && r.wall_ns < INT64_MAX)
			worker_sign(w, r.start_boot_ns + r.wall_ns);
	}
	/* The same revision twice says the same; an end outranks progress of its own revision. */
	if (a->known && (r.rev < a->rev || (r.rev == a->rev && a->ended)))
		return 0;
	attempt_take(m, a, &r);
	return m->error;
}

static int feed_message(struct model *m, struct worker *w, const struct stream *s,
			const msgpack_object *message)
{
	const msgpack_object *item;
	uint64_t type, boot_ns = 0;
	struct text json;

	if (message->type != MSGPACK_OBJECT_ARRAY || message->via.array.size < 2 ||
	    !object_u64(&message->via.array.ptr[0], &type)) {
		m->records_bad++;
		return 0;
	}
	item = message->via.array.ptr;
	if (type >= CREMA_MSG_TASK_START && type <= CREMA_MSG_TASK_AMEND)
		return feed_task(m, w, s, message);
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

static int feed_data(struct model *m, struct worker *w, const struct crema_frame_header *head,
		     const msgpack_object *root)
{
	struct stream *s = worker_stream(w, head->stream);
	size_t i;
	int rc;

	if (!s)
		return -ENOMEM;
	if (root->type != MSGPACK_OBJECT_ARRAY) {
		m->records_bad++;
		return 0;
	}
	rc = stream_received(s, head->first_seq, head->first_seq + head->count);
	for (i = 0; i < root->via.array.size && !rc; i++)
		rc = feed_message(m, w, s, &root->via.array.ptr[i]);
	return rc;
}

int model_feed(void *model, const struct crema_frame_header *head, const unsigned char *raw,
	       size_t raw_bytes)
{
	struct model *m = model;
	struct worker *w;
	struct unpack u;
	uint64_t note;
	int rc = 0;

	m->frames++;
	if (head->type != CREMA_FRAME_HELLO && head->type != CREMA_FRAME_DATA &&
	    head->type != CREMA_FRAME_NOTE)
		return 0;
	if (!raw_bytes || unpack_open(&u, raw, raw_bytes)) {
		m->records_bad++;
		return 0;
	}
	if (head->type == CREMA_FRAME_NOTE) {
		note = get_u64(&u.root, "time_ns", 0);
		if (note > m->last_note_ns)
			m->last_note_ns = note;
		goto out;
	}
	w = model_worker(m, head->worker);
	if (!w)
		rc = -ENOMEM;
	else if (head->type == CREMA_FRAME_HELLO)
		rc = model_feed_hello(m, w, head->stream, &u.root);
	else
		rc = feed_data(m, w, head, &u.root);
out:
	unpack_release(&u);
	return rc ? rc : m->error;
}
