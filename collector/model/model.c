/* SPDX-License-Identifier: BSD-3-Clause */
/* model.c - the model's lifecycle, workers and their streams. */
#include "collector/model/model.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/frame.h"

int model_init(struct model *m)
{
	memset(m, 0, sizeof(*m));
	m->names.arena = &m->arena;
	m->history_shift = HISTORY_CELL_SHIFT;
	return 0;
}

const char *model_text(struct model *m, struct text t)
{
	const char *s = names_add(&m->names, t);

	if (t.ptr && !s)
		m->error = -ENOMEM;
	return s;
}

const char *model_task_text(struct model *m, enum task_field field, struct text t)
{
	const char *last = m->recent[field];

	if (last && t.ptr && strlen(last) == t.len && !memcmp(last, t.ptr, t.len))
		return last;
	return m->recent[field] = model_text(m, t);
}

static bool same_worker(const void *item, const void *key)
{
	const struct worker *w = item;

	return !memcmp(w->id, key, sizeof(w->id));
}

struct worker *model_find_worker(const struct model *m, const uint8_t *id)
{
	return table_find(&m->worker_table, hash_bytes(1, id, CREMA_WORKER_ID_BYTES), same_worker,
			  id);
}

struct worker *model_worker(struct model *m, const uint8_t *id)
{
	uint64_t hash = hash_bytes(1, id, CREMA_WORKER_ID_BYTES);
	struct worker *w = model_find_worker(m, id);

	if (w)
		return w;
	w = TABLE_NEW(&m->worker_table, hash, &m->arena, &m->workers);
	if (!w) {
		m->error = -ENOMEM;
		return NULL;
	}
	w->place = m->workers.n - 1;
	memcpy(w->id, id, sizeof(w->id));
	frame_hex(w->hex, id);
	return w;
}

struct stream *worker_stream(struct worker *w, uint64_t id)
{
	struct stream *s;
	size_t i;

	for (i = w->streams.n; i > 0; i--) {
		if (w->streams.v[i - 1].id == id)
			return &w->streams.v[i - 1];
	}
	s = ARRAY_NEW(&w->streams);
	if (s)
		s->id = id;
	return s;
}

void worker_sign(struct worker *w, uint64_t boot_ns)
{
	if (!boot_ns)
		return;
	if (!w->first_boot_ns || boot_ns < w->first_boot_ns)
		w->first_boot_ns = boot_ns;
	if (boot_ns > w->last_boot_ns)
		w->last_boot_ns = boot_ns;
}

int stream_received(struct stream *s, uint64_t from, uint64_t to)
{
	return ranges_add(&s->ranges, from, to, SIZE_MAX);
}

bool stream_has(const struct stream *s, uint64_t number)
{
	return ranges_has(&s->ranges, number);
}

void stream_pack(const struct stream *s, msgpack_packer *pk)
{
	size_t i;

	pack_array(pk, 2 * s->ranges.n);
	for (i = 0; i < s->ranges.n; i++) {
		pack_u64(pk, s->ranges.v[i].from);
		pack_u64(pk, s->ranges.v[i].to);
	}
}

int stream_take(struct stream *s, const msgpack_object *list)
{
	uint64_t from, to;
	uint32_t i;
	int rc = 0;

	if (list->type != MSGPACK_OBJECT_ARRAY || list->via.array.size % 2)
		return -EBADMSG;
	for (i = 0; i < list->via.array.size && !rc; i += 2)
		rc = object_u64(&list->via.array.ptr[i], &from) &&
				     object_u64(&list->via.array.ptr[i + 1], &to)
			     ? stream_received(s, from, to)
			     : -EBADMSG;
	return rc;
}

void worker_pack_streams(const struct worker *w, msgpack_packer *pk)
{
	size_t i;

	pack_array(pk, w->streams.n);
	for (i = 0; i < w->streams.n; i++) {
		pack_array(pk, 2);
		pack_u64(pk, w->streams.v[i].id);
		stream_pack(&w->streams.v[i], pk);
	}
}

int worker_take_streams(struct worker *w, const msgpack_object *list)
{
	const msgpack_object *pair;
	struct stream *s;
	uint64_t id;
	uint32_t i;
	int rc = 0;

	if (list->type != MSGPACK_OBJECT_ARRAY)
		return -EBADMSG;
	for (i = 0; i < list->via.array.size && !rc; i++) {
		pair = &list->via.array.ptr[i];
		if (pair->type != MSGPACK_OBJECT_ARRAY || pair->via.array.size < 2 ||
		    !object_u64(&pair->via.array.ptr[0], &id))
			return -EBADMSG;
		s = worker_stream(w, id);
		rc = s ? stream_take(s, &pair->via.array.ptr[1]) : -ENOMEM;
	}
	return rc;
}

uint64_t worker_utc_ns(const struct worker *w, uint64_t boot_ns)
{
	const struct clock_pair *v = w->clocks.v;
	size_t from = 0, to = w->clocks.n, i;

	if (!to || !boot_ns)
		return 0;
	while (from < to) {
		i = from + (to - from) / 2;
		if (v[i].boot_ns < boot_ns)
			from = i + 1;
		else
			to = i;
	}
	if (from == w->clocks.n ||
	    (from && boot_ns - v[from - 1].boot_ns <= v[from].boot_ns - boot_ns))
		from--;
	return v[from].real_ns + (boot_ns - v[from].boot_ns);
}

double worker_utc(const struct worker *w, uint64_t boot_ns)
{
	return utc_seconds(worker_utc_ns(w, boot_ns));
}
