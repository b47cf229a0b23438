/* SPDX-License-Identifier: BSD-3-Clause */
/* selection.c - the filter for a journal that is read for some runs (selection.h). */
#include "collector/model/selection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/walk.h"

/* One item per key of a table: what was kept, or a time. */
struct entry {
	uint64_t key[4];
	uint64_t ns, end_boot_ns;
};

static bool same_key(const void *item, const void *key)
{
	return memcmp(((const struct entry *)item)->key, key,
		      sizeof(((const struct entry *)item)->key)) == 0;
}

static uint64_t hash_of(const uint64_t key[4])
{
	return hash_pair(hash_pair(key[0], key[1]), hash_pair(key[2], key[3]));
}

/* The entry of the key; *fresh: it is new. NULL: out of memory. */
static struct entry *entry_of(struct selection *s, struct table *table, const uint64_t key[4],
			      bool *fresh)
{
	uint64_t hash = hash_of(key);
	struct entry *e = table_find(table, hash, same_key, key);

	*fresh = !e;
	if (e)
		return e;
	e = arena_get(&s->arena, sizeof(*e));
	if (!e || table_add(table, hash, e))
		return NULL;
	memcpy(e->key, key, sizeof(e->key));
	return e;
}

static bool same_span(const void *item, const void *key)
{
	return ((const struct seen_span *)item)->span == *(const uint64_t *)key;
}

static struct seen_span *find_span(struct selection *s, uint64_t span)
{
	return table_find(&s->seen, hash_pair(span, 1), same_span, &span);
}

struct seen_span *selection_span(struct selection *s, const char *span)
{
	return find_span(s, (uintptr_t)span);
}

static struct seen_span *see_span(struct selection *s, uint64_t span)
{
	struct seen_span *seen = find_span(s, span);

	if (seen)
		return seen;
	seen = arena_get(&s->arena, sizeof(*seen));
	if (!seen || table_add(&s->seen, hash_pair(span, 1), seen))
		return NULL;
	seen->span = span;
	seen->first_file = s->files.n - 1;
	return seen;
}

int selection_file(struct selection *s, const char *path, uint16_t segment)
{
	struct selection_file *f = ARRAY_NEW(&s->files);

	if (!f)
		return -ENOMEM;
	f->path = strdup(path);
	f->segment = segment;
	return f->path ? 0 : -ENOMEM;
}

void selection_frames(struct selection *s, uint64_t frames)
{
	s->files.v[s->files.n - 1].frames = frames;
}

/* Names are interned and compared by address. */
static uint64_t name(struct model *m, bool known, struct text t)
{
	return known ? (uintptr_t)model_text(m, t) : 0;
}

static bool is_lambda(const struct task_record *r)
{
	return TASK_KNOWN(r, prefix) && r->prefix.len == 6 && !memcmp(r->prefix.ptr, "lambda", 6);
}

static bool survey_takes(struct model *m, const struct worker *w, const struct task_record *r)
{
	struct selection *s = m->selection;
	uint64_t span = name(m, true, r->span), end;
	uint64_t flags = TASK_KNOWN(r, flags) ? r->flags & (CREMA_TASK_CHUNK | CREMA_TASK_MERGE |
							    CREMA_TASK_PREPROCESSING)
					      : 0;
	uint64_t by_worker[4] = {span, (uintptr_t)w, 0, 0};
	uint64_t by_file[4] = {span, name(m, TASK_KNOWN(r, dataset), r->dataset),
			       name(m, TASK_KNOWN(r, filename), r->filename),
			       flags << 1 | is_lambda(r)};
	struct entry *first, *file;
	struct seen_span *seen;
	bool fresh, takes = false;

	first = entry_of(s, &s->earliest, by_worker, &fresh);
	file = entry_of(s, &s->kept, by_file, &takes);
	seen = see_span(s, span);
	if (!first || !file || !seen) {
		m->error = -ENOMEM;
		return false;
	}
	seen->last_file = s->files.n - 1;
	if (!s->counted && r->type == CREMA_MSG_TASK_START)
		seen->begun++;
	else if (!s->counted)
		seen->ended++;
	if (!TASK_KNOWN(r, start_boot_ns))
		return takes;
	end = r->start_boot_ns + (TASK_KNOWN(r, wall_ns) ? r->wall_ns : 0);
	if (end > first->end_boot_ns)
		first->end_boot_ns = end;
	if (first->ns && r->start_boot_ns >= first->ns)
		return takes;
	first->ns = r->start_boot_ns;
	return true;
}

int selection_counted(struct selection *s, const char *span, uint64_t begun, uint64_t ended)
{
	struct seen_span *seen = see_span(s, (uintptr_t)span);

	if (!seen)
		return -ENOMEM;
	seen->last_file = s->files.n - 1;
	seen->begun += begun;
	seen->ended += ended;
	return 0;
}

int selection_ended(struct selection *s, const char *span, const struct worker *w, uint64_t end_ns)
{
	uint64_t key[4] = {(uintptr_t)span, (uintptr_t)w, 0, 0};
	bool fresh;
	struct entry *e = entry_of(s, &s->earliest, key, &fresh);

	if (e && end_ns > e->end_boot_ns)
		e->end_boot_ns = end_ns;
	return e ? 0 : -ENOMEM;
}

bool selection_end(const struct selection *s, const char *span, const struct worker *w,
		   uint64_t *end_ns)
{
	uint64_t key[4] = {(uintptr_t)span, (uintptr_t)w, 0, 0};
	const struct entry *e = table_find(&s->earliest, hash_of(key), same_key, key);

	*end_ns = e ? e->end_boot_ns : 0;
	return *end_ns != 0;
}

/* Also takes what may be an attempt's first record: later records name its span. */
static bool batch_takes(struct model *m, const struct worker *w, const struct task_record *r)
{
	const struct seen_span *seen;

	if (!TASK_KNOWN(r, span))
		return stream_has(&w->spanned, r->attempt);
	seen = selection_span(m->selection, model_text(m, r->span));
	return seen && seen->batch == m->selection->batch;
}

struct wanted_span {
	struct text id;
	const void *run;
};

static bool same_text(const void *item, const void *key)
{
	const struct text *a = &((const struct wanted_span *)item)->id, *b = key;

	return a->len == b->len && !memcmp(a->ptr, b->ptr, a->len);
}

static const struct wanted_span *wanted_find(const struct selection *s, struct text span)
{
	return table_find(&s->wanted, hash_bytes(1, span.ptr, span.len), same_text, &span);
}

bool selection_wants(const struct selection *s, struct text span)
{
	return span_is_plain(span) || wanted_find(s, span);
}

bool selection_joins(const struct model *m, const char *span, const char *other)
{
	const struct selection *s = m->selection;
	const struct wanted_span *a, *b;

	if (!s || s->pass != SELECTION_RUNS)
		return true;
	a = wanted_find(s, (struct text){span, strlen(span)});
	b = wanted_find(s, (struct text){other, strlen(other)});
	return a && b && a->run == b->run;
}

const char *selection_keep(struct selection *s, const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = arena_get(&s->wanted_arena, n);

	return copy ? memcpy(copy, text, n) : NULL;
}

int selection_want(struct selection *s, const void *run, const char *span)
{
	struct wanted_span *item = arena_get(&s->wanted_arena, sizeof(*item));

	if (!item)
		return -ENOMEM;
	item->id = (struct text){selection_keep(s, span), strlen(span)};
	if (!item->id.ptr)
		return -ENOMEM;
	if (wanted_find(s, item->id)) /* the run was requested twice */
		return 0;
	item->run = run;
	return table_add(&s->wanted, hash_bytes(1, item->id.ptr, item->id.len), item);
}

static bool same_path(const void *item, const void *key)
{
	return !strcmp(item, key);
}

bool selection_skips(const struct selection *s, const char *path)
{
	return table_find(&s->skipped, hash_bytes(1, path, strlen(path)), same_path, path);
}

int selection_skip(struct selection *s, const char *path)
{
	const char *copy = selection_keep(s, path);

	return copy ? table_add(&s->skipped, hash_bytes(1, path, strlen(path)), (void *)copy)
		    : -ENOMEM;
}

size_t selection_skips_task(const struct selection *s, const unsigned char *message, size_t n)
{
	struct walk_item array, type;
	int64_t bytes;

	if (!s || !s->no_tasks || !walk_item(message, n, &array) || array.kind != WALK_ARRAY ||
	    !walk_item(message + array.bytes, n - array.bytes, &type) || type.kind != WALK_NUMBER ||
	    !task_is_message(type.number))
		return 0;
	bytes = walk_values(message, n, 1, WALK_DEPTH_MAX);
	return bytes > 0 ? (size_t)bytes : 0;
}

bool selection_takes_task(struct model *m, struct worker *w, const struct task_record *r,
			  bool known)
{
	bool takes = true;

	if (!m->selection)
		return true;
	if (m->selection->pass == SELECTION_BATCH)
		return known || batch_takes(m, w, r);
	if (!TASK_KNOWN(r, span)) { /* a late record may lack what an earlier one had */
		takes = !stream_has(&w->spanned, r->attempt);
		m->selection->files.v[m->selection->files.n - 1].nameless = true;
	} else if (m->selection->pass == SELECTION_RUNS) {
		takes = selection_wants(m->selection, r->span);
		m->selection->taken += takes;
	} else if (!span_is_plain(r->span))
		takes = survey_takes(m, w, r);
	if (TASK_KNOWN(r, span) && stream_received(&w->spanned, r->attempt, r->attempt + 1))
		m->error = -ENOMEM;
	if (takes && !known && stream_received(&w->taken_up, r->attempt, r->attempt + 1))
		m->error = -ENOMEM;
	if (!takes && !known) {
		m->left_out++;
		w->left_out = true;
	}
	return takes || known;
}

void selection_slim(const struct selection *s, struct task_record *r)
{
	uint64_t keep = 0;

	if (!s || s->pass == SELECTION_RUNS)
		return;
#define KEEP(name) keep |= UINT64_C(1) << TASK_F_##name
	KEEP(attempt), KEEP(key_hash), KEEP(span), KEEP(prefix), KEEP(flags), KEEP(status);
	KEEP(consumes), KEEP(start_boot_ns), KEEP(stop_boot_ns), KEEP(wall_ns);
	KEEP(events), KEEP(entrystart), KEEP(entrystop);
	if (!TASK_KNOWN(r, key_hash))
		KEEP(key);
	if (s->pass != SELECTION_BATCH) /* runs are grouped by these */
		KEEP(dataset), KEEP(filename);
#undef KEEP
	r->known &= keep;
	r->own_known = r->pool_known = 0;
	r->count_known = 0;
	memset(r->own, 0, sizeof(r->own));
	memset(r->pool, 0, sizeof(r->pool));
	memset(r->count, 0, sizeof(r->count));
}

static bool same_worker(const void *item, const void *key)
{
	return !memcmp(((const struct worker *)item)->id, key, CREMA_WORKER_ID_BYTES);
}

/* By the worker's final clock, not that of the records read so far; 0: it has none. */
static uint64_t utc_ns(const struct selection *s, const struct worker *w, uint64_t boot_ns)
{
	const struct worker *clock =
		table_find(&s->clocks, hash_bytes(1, w->id, sizeof(w->id)), same_worker, w->id);

	return clock ? worker_utc_ns(clock, boot_ns) : 0;
}

bool selection_takes_times(const struct model *m, const struct worker *w, uint64_t from_boot_ns,
			   uint64_t to_boot_ns)
{
	const struct selection *s = m->selection;
	uint64_t from = utc_ns(s, w, from_boot_ns), to = utc_ns(s, w, to_boot_ns);
	size_t i;

	for (i = 0; from && to && i < s->times.n; i++) {
		if (from <= s->times.v[i].to && to >= s->times.v[i].from)
			return true;
	}
	return !from || !to;
}

bool selection_takes_time(const struct model *m, const struct worker *w, uint64_t boot_ns)
{
	const struct selection *s = m->selection;
	uint64_t ns;
	size_t i;

	if (!s || s->pass == SELECTION_FOOTER)
		return true;
	ns = utc_ns(s, w, boot_ns);
	if (!ns)
		return true;
	for (i = 0; i < s->times.n && s->times.v[i].to <= ns; i++)
		;
	return i < s->times.n && s->times.v[i].from < ns;
}

int selection_history(struct model *m, struct worker *w, const struct totals *t,
		      uint64_t snapshot_ns)
{
	struct history *h = &w->history;
	bool first = w->outer_segment != m->segment + 1u;
	size_t n;
	int rc;

	if (m->selection && m->selection->pass != SELECTION_RUNS)
		return 0;
	if (selection_takes_time(m, w, t->boot_ns))
		return history_add(m, h, t, snapshot_ns);
	w->outer_segment = m->segment + 1u;
	if (!first && w->outer_point && w->outer_point == h->n) {
		h->n--;
		m->history_points--;
	}
	n = h->n;
	rc = history_add(m, h, t, snapshot_ns);
	w->outer_point = !first && h->n > n ? h->n : 0;
	return rc;
}

bool selection_takes_stack(const struct selection *s, struct text span)
{
	return !s || s->pass != SELECTION_RUNS || !span.ptr || selection_wants(s, span);
}

/* A skipped message still shows that the worker was alive. */
static void sign(struct worker *w, uint64_t type, const msgpack_object *map)
{
	uint64_t boot_ns = 0;

	if (type == CREMA_MSG_DASK)
		object_u64(map, &boot_ns);
	else if (type == CREMA_MSG_SAMPLE || type == CREMA_MSG_HOST || type == CREMA_MSG_LINES)
		boot_ns = get_u64(map, "boot_ns", 0);
	else if (type == CREMA_MSG_STACK)
		boot_ns = get_u64(map, "end_boot_ns", 0);
	worker_sign(w, boot_ns);
}

static bool takes_row(struct selection *s, const msgpack_object *map)
{
	struct text span = get_text(map, "span");
	bool wanted = s->pass == SELECTION_RUNS && span.ptr && selection_wants(s, span);

	s->taken += wanted;
	return wanted || (s->pass == SELECTION_RUNS && !span.ptr);
}

bool selection_takes_message(const struct model *m, struct worker *w, uint64_t type,
			     const msgpack_object *map)
{
	struct selection *s = m->selection;

	if (!s || s->pass == SELECTION_FOOTER)
		return true;
	sign(w, type, map);
	switch (type) {
	case CREMA_MSG_SAMPLE:
	case CREMA_MSG_HOST:
		return s->pass == SELECTION_RUNS &&
		       selection_takes_time(m, w, get_u64(map, "boot_ns", 0));
	case CREMA_MSG_FILE:
	case CREMA_MSG_CODEC:
	case CREMA_MSG_SERVER:
	case CREMA_MSG_SECTION:
	case CREMA_MSG_GAUGE:
	case CREMA_MSG_COLUMN:
		return takes_row(s, map);
	case CREMA_MSG_LINES: /* its worker-wide part is about all spans */
	case CREMA_MSG_STACK: /* so is its number */
		takes_row(s, map);
		return s->pass == SELECTION_RUNS;
	case CREMA_MSG_MODULE:
	case CREMA_MSG_DASK:
		return s->pass == SELECTION_RUNS;
	case CREMA_MSG_TOTALS:
	case CREMA_MSG_CLOCKS:
	case CREMA_MSG_GOODBYE:
	case CREMA_MSG_DOING:
		return true;
	default: /* of a newer agent; a footer counts it with its span */
		takes_row(s, map);
		return true;
	}
}

void selection_restart(struct selection *s)
{
	size_t i;

	for (i = 0; i < s->files.n; i++) {
		free(s->files.v[i].path);
		free(s->files.v[i].spans.v);
		free(s->files.v[i].sampled.v);
	}
	free(s->files.v);
	memset(&s->files, 0, sizeof(s->files));
	table_release(&s->earliest);
	table_release(&s->kept);
	table_release(&s->seen);
	arena_release(&s->arena);
}
