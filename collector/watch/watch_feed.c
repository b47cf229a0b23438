/* SPDX-License-Identifier: BSD-3-Clause */
/* watch_feed.c - feeds one frame into the live numbers: only records that no journal had before. */
#include <errno.h>
#include <string.h>

#include "collector/ingest/server_payload.h"
#include "collector/watch/watch_parts.h"
#include "common/hash.h"

struct stream_key {
	const uint8_t *worker;
	uint64_t stream;
};

static bool same_worker(const void *item, const void *id)
{
	return !memcmp(((const struct watch_worker *)item)->id, id, CREMA_WORKER_ID_BYTES);
}

static bool same_stream(const void *item, const void *key)
{
	const struct watch_stream *s = item;
	const struct stream_key *k = key;

	return s->stream == k->stream && same_worker(s->of, k->worker);
}

/* Creates it if there is none; NULL: out of memory. */
static struct watch_worker *worker_of(struct watch *w, const uint8_t *id)
{
	uint64_t hash = hash_worker(id, w->seed);
	struct watch_worker *worker = table_find(&w->workers, hash, same_worker, id);

	if (worker)
		return worker;
	worker = arena_get(&w->arena, sizeof(*worker));
	if (!worker || table_add(&w->workers, hash, worker))
		return NULL;
	memcpy(worker->id, id, sizeof(worker->id));
	return worker;
}

/* Creates it if there is none; NULL: out of memory. */
static struct watch_stream *stream_of(struct watch *w, const uint8_t *worker, uint64_t stream)
{
	struct stream_key key = {worker, stream};
	uint64_t hash = hash_mix(hash_worker(worker, w->seed) ^ hash_mix(stream ^ w->seed[1]));
	struct watch_stream *s = table_find(&w->streams, hash, same_stream, &key);
	struct watch_worker *of;

	if (s)
		return s;
	of = worker_of(w, worker);
	s = of ? arena_get(&w->arena, sizeof(*s)) : NULL;
	if (!s || table_add(&w->streams, hash, s)) {
		w->no_memory = true;
		return NULL;
	}
	s->of = of;
	s->stream = stream;
	return s;
}

static uint64_t gaps_of(const struct ranges *r)
{
	return r->n ? r->v[r->n - 1].to - r->bytes : 0;
}

static void add(struct watch *w, struct watch_stream *s, uint64_t from, uint64_t to)
{
	struct ranges *r = &s->records;
	uint64_t before = r->bytes;
	int err;

	s->of->missing -= gaps_of(r);
	err = ranges_add(r, from, to, WATCH_RANGES);
	if (err == -ENOSPC) { /* it touches no other range, so all of it is new */
		err = ranges_add(r, r->v[0].to, r->v[1].from, WATCH_RANGES);
		err = err ? err : ranges_add(r, from, to, WATCH_RANGES);
		s->of->missing += r->bytes - before - (to - from);
	}
	w->no_memory = w->no_memory || err;
	s->of->missing += gaps_of(r);
}

uint64_t watch_add(struct watch *w, const uint8_t *worker, uint64_t stream, uint64_t from,
		   uint64_t to)
{
	struct watch_stream *s = stream_of(w, worker, stream);
	uint64_t before = s ? s->records.bytes : 0;

	if (!s)
		return 0;
	add(w, s, from, to);
	return s->records.bytes - before;
}

int watch_open(struct watch *w, struct watch_journal *j, const struct frame *frame,
	       struct unpack *map)
{
	int err = unpack_frame(map, frame, &w->scratch);

	w->no_memory = w->no_memory || err == -ENOMEM;
	j->damaged += err == -EBADMSG;
	return err;
}

static void feed_hello(struct watch *w, struct watch_journal *j, const struct frame *frame)
{
	const struct crema_frame_header *head = &frame->head;
	struct watch_stream *s = stream_of(w, head->worker, head->stream);
	struct live_fields fields;
	struct unpack map;

	if (!s)
		return;
	if (watch_open(w, j, frame, &map))
		return;
	live_hello_fields(&fields, &map.root);
	if (fields.set)
		s->fields = fields;
	if (live_hello(w->live, head->worker, head->stream, &map.root))
		w->no_memory = true;
	unpack_release(&map);
}

/* 0: `to` has the checked messages; -EBADMSG; -ENOMEM. */
static int open_messages(struct watch *w, const struct frame *frame, struct live_frame *to)
{
	const struct crema_frame_header *head = &frame->head;
	const unsigned char *raw;
	int err;

	/* Each message takes at least two bytes: do not allocate for a huge count. */
	if (head->count > head->raw_bytes / 2 + 1)
		return -EBADMSG;
	buf_clear(&w->starts);
	if (buf_reserve(&w->starts, (size_t)(head->count + 1) * sizeof(*to->starts)))
		return -ENOMEM;
	err = frame_payload(frame, &w->scratch, &raw);
	if (err)
		return err;
	to->head = head;
	to->raw = raw;
	to->starts = (const uint32_t *)(const void *)w->starts.data;
	return server_payload_check(raw, head->raw_bytes, head->count,
				    (uint32_t *)(void *)w->starts.data);
}

static int feed_messages(struct watch *w, struct watch_journal *j, const struct frame *frame,
			 struct live_frame *live)
{
	int err = open_messages(w, frame, live);

	if (err == -EBADMSG)
		j->damaged++;
	else if (!err)
		err = live_data(w->live, live);
	w->no_memory = w->no_memory || err == -ENOMEM;
	return err;
}

static void feed_data(struct watch *w, struct watch_journal *j, const struct frame *frame)
{
	const struct crema_frame_header *head = &frame->head;
	uint64_t from = head->first_seq, to = from + head->count, known;
	struct watch_stream *s;
	struct range one = {from, to};
	struct ranges these = {&one, 1, 1, head->count};
	struct live_frame live = {0};

	if (from >= to)
		return;
	s = stream_of(w, head->worker, head->stream);
	known = s ? ranges_common(&s->records, &these) : 0;
	if (!s || known == head->count)
		return;
	live.known = known ? &s->records : NULL;
	live.fields = s->fields.set ? &s->fields : NULL;
	if (!feed_messages(w, j, frame, &live))
		add(w, s, from, to);
}

void watch_feed_carried(struct watch *w, struct watch_journal *j, const struct frame *frame)
{
	struct live_frame live = {0};

	feed_messages(w, j, frame, &live);
}

void watch_feed(struct watch *w, struct watch_journal *j, const struct frame *frame)
{
	uint8_t type = frame->head.type;

	if (type != CREMA_FRAME_HELLO && type != CREMA_FRAME_DATA)
		return;
	if (live_full(w->live, frame->head.worker)) {
		w->left_out = true;
		return;
	}
	if (type == CREMA_FRAME_HELLO)
		feed_hello(w, j, frame);
	else
		feed_data(w, j, frame);
}
