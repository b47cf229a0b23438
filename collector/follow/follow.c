/* SPDX-License-Identifier: BSD-3-Clause */
/* follow.c - see follow.h. */
#include "collector/follow/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/ranges.h"

#define IDLE_MS 200
#define SETTLE_NS UINT64_C(1000000000)

struct stream_seen {
	uint8_t worker[CREMA_WORKER_ID_BYTES];
	uint64_t stream;
	struct ranges records;
	uint64_t hello; /* hash of the last one; 0: none */
	struct buf hello_bytes;
	struct unpack hello_map; /* of these */
};

struct stream_key {
	const uint8_t *worker;
	uint64_t stream;
};

static bool same_stream(const void *item, const void *key)
{
	const struct stream_seen *s = item;
	const struct stream_key *k = key;

	return s->stream == k->stream && !memcmp(s->worker, k->worker, sizeof(s->worker));
}

static struct stream_seen *stream_of(struct follow *f, const struct crema_frame_header *head)
{
	struct stream_key key = {head->worker, head->stream};
	uint64_t hash = hash_bytes(head->stream, head->worker, sizeof(head->worker));
	struct stream_seen *s = table_find(&f->streams, hash, same_stream, &key);

	if (s)
		return s;
	s = arena_get(&f->arena, sizeof(*s));
	if (!s || table_add(&f->streams, hash, s))
		return NULL;
	memcpy(s->worker, head->worker, sizeof(s->worker));
	s->stream = head->stream;
	return s;
}

/* Whether the destination has it already. */
static bool is_there(const struct follow *f, const struct place *at)
{
	return place_order(at, &f->to->last) <= 0;
}

static int give(struct follow *f, const struct record *r)
{
	int rc;

	buf_clear(&f->line);
	rc = record_line(&f->line, r);
	return rc ? rc : destination_put(f->to, (const char *)f->line.data, f->line.len, r);
}

static struct place place_of(const struct follow *f)
{
	return (struct place){f->tail.segment_ns, f->tail.reader.stats.frames, 0};
}

/* "WORKER-STREAM-REST" */
static void name_record(struct record *r, const struct crema_frame_header *head, const char *rest)
{
	char hex[FRAME_HEX_BYTES];

	snprintf(r->id, sizeof(r->id), "%s-%" PRIu64 "-%s", frame_hex(hex, head->worker),
		 head->stream, rest);
}

/* 0 for a frame that cannot be read, which is counted; other errors are not about the frame. */
static int damaged(struct follow *f, int rc)
{
	f->damaged += rc == -EBADMSG;
	return rc == -EBADMSG ? 0 : rc;
}

/* Each segment repeats hellos: only one with new content is a record. */
static int take_hello(struct follow *f, const struct frame *frame, const unsigned char *raw)
{
	struct stream_seen *s = stream_of(f, &frame->head);
	uint64_t hash = hash_bytes(7, raw, frame->head.raw_bytes) | 1;
	struct record r = {.at = place_of(f), .worker = frame->head.worker};
	char rest[40];
	int rc;

	if (!s)
		return -ENOMEM;
	if (s->hello == hash)
		return 0;
	unpack_release(&s->hello_map);
	memset(&s->hello_map, 0, sizeof(s->hello_map));
	buf_clear(&s->hello_bytes);
	s->hello = 0;
	if (buf_add(&s->hello_bytes, raw, frame->head.raw_bytes))
		return -ENOMEM;
	rc = unpack_open(&s->hello_map, s->hello_bytes.data, s->hello_bytes.len);
	if (rc) {
		memset(&s->hello_map, 0, sizeof(s->hello_map));
		return damaged(f, rc);
	}
	s->hello = hash;
	if (is_there(f, &r.at))
		return 0;
	snprintf(rest, sizeof(rest), "hello-%016" PRIx64, hash);
	name_record(&r, &frame->head, rest);
	r.frame_type = CREMA_FRAME_HELLO;
	r.message = &s->hello_map.root;
	return give(f, &r);
}

static int take_note(struct follow *f, const struct frame *frame, const unsigned char *raw)
{
	struct record r = {.at = place_of(f), .frame_type = CREMA_FRAME_NOTE};
	struct unpack map;
	int rc;

	rc = unpack_open(&map, raw, frame->head.raw_bytes);
	if (rc)
		return damaged(f, rc);
	snprintf(r.id, sizeof(r.id), "note-%" PRIu64 "-%" PRIu64, r.at.segment_ns, r.at.frame);
	r.message = &map.root;
	rc = give(f, &r);
	unpack_release(&map);
	return rc;
}

static int take_message(struct follow *f, const struct stream_seen *s, struct record *r,
			const struct crema_frame_header *head)
{
	uint64_t number = head->first_seq + r->at.item;
	char rest[24];

	if (is_there(f, &r->at) || ranges_has(&s->records, number))
		return 0;
	snprintf(rest, sizeof(rest), "%" PRIu64, number);
	name_record(r, head, rest);
	return give(f, r);
}

static int take_data(struct follow *f, const struct crema_frame_header *head,
		     const unsigned char *raw, struct stream_seen *s)
{
	struct record r = {.at = place_of(f), .worker = head->worker};
	size_t n = head->raw_bytes, at, used;
	struct unpack u = {0};
	uint32_t items;
	int rc;

	if (unpack_check(raw, n) || unpack_array(raw, n, &items, &at)) {
		f->damaged++;
		return 0;
	}
	r.frame_type = CREMA_FRAME_DATA;
	r.task_fields = s->hello ? get(&s->hello_map.root, "task_fields") : NULL;
	for (rc = 0; !rc && r.at.item < items; r.at.item++, at += used) {
		rc = unpack_next(&u, raw + at, n - at, &used);
		r.message = &u.root;
		if (!rc)
			rc = take_message(f, s, &r, head);
	}
	unpack_release(&u);
	return rc;
}

/* Of what the destination has, only hellos are unpacked: a start reads all of the journal. */
static int take_frame(struct follow *f, const struct frame *frame)
{
	const struct crema_frame_header *head = &frame->head;
	struct place at = place_of(f), end = {at.segment_ns, at.frame, UINT64_MAX};
	bool known = is_there(f, &end);
	struct stream_seen *s = NULL;
	const unsigned char *raw;
	int rc = 0;

	if (head->type != CREMA_FRAME_DATA && head->type != CREMA_FRAME_HELLO &&
	    (head->type != CREMA_FRAME_NOTE || is_there(f, &at)))
		return 0;
	if (head->type == CREMA_FRAME_DATA && !(s = stream_of(f, head)))
		return -ENOMEM;
	if (!s || !known) {
		rc = frame_payload(frame, &f->scratch, &raw);
		if (rc)
			return damaged(f, rc);
		rc = s				       ? take_data(f, head, raw, s)
		     : head->type == CREMA_FRAME_HELLO ? take_hello(f, frame, raw)
						       : take_note(f, frame, raw);
	}
	if (!rc && s && head->count)
		rc = ranges_add(&s->records, head->first_seq, head->first_seq + head->count,
				SIZE_MAX);
	return rc;
}

static int settle(struct follow *f)
{
	f->settled_ns = clock_mono_ns();
	return destination_settle(f->to);
}

static bool stopped(const struct follow *f)
{
	return *f->stop;
}

/* Whether the journal has the segment of the destination's last record: 0, or -ESTALE if older ones
 * exist, which means that retention has not dropped it. */
static int find_last(struct follow *f)
{
	char path[PATH_MAX];
	uint64_t last = f->to->last.segment_ns;
	int64_t first = tail_find(&f->tail, 0, path);

	if (first <= 0 || !last)
		return (int)(first < 0 ? first : 0);
	if (tail_find(&f->tail, last - 1, path) == (int64_t)last)
		return 0;
	f->lost = (uint64_t)first > last;
	return f->lost ? 0 : -ESTALE;
}

/* Reads to the end of the journal as written so far. */
static int read_on(struct follow *f)
{
	struct frame frame;
	int rc = 0;

	while (!rc && !stopped(f)) {
		rc = tail_next(&f->tail, &frame);
		if (rc <= 0)
			break;
		rc = take_frame(f, &frame);
		if (!rc && clock_mono_ns() - f->settled_ns >= SETTLE_NS)
			rc = settle(f);
	}
	f->lost = f->lost || f->tail.lost;
	return rc;
}

int follow_run(struct follow *f)
{
	int rc = tail_init(&f->tail, f->dir);

	rc = rc ? rc : find_last(f);
	f->settled_ns = clock_mono_ns();
	while (!rc && !stopped(f)) {
		rc = read_on(f);
		if (rc || stopped(f))
			break;
		rc = settle(f);
		if (f->once || rc)
			break;
		poll(NULL, 0, IDLE_MS);
	}
	return rc ? rc : settle(f);
}

void follow_release(struct follow *f)
{
	struct stream_seen *s;
	size_t at = 0;

	while ((s = table_next(&f->streams, &at))) {
		ranges_release(&s->records);
		unpack_release(&s->hello_map);
		buf_release(&s->hello_bytes);
	}
	tail_close(&f->tail);
	table_release(&f->streams);
	arena_release(&f->arena);
	buf_release(&f->scratch);
	buf_release(&f->line);
}
