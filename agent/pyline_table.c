/* SPDX-License-Identifier: BSD-3-Clause */
/* pyline_table.c - places and rows by hashes, in open addressing. */
#include "agent/pyline_table.h"

#include <string.h>

#include "fnv.h"

int pyline_table_known(const struct pyline_table *t, uint64_t key)
{
	return t->known[key % PYLINE_KEYS].key == key ? t->known[key % PYLINE_KEYS].place - 1 : -1;
}

static void know(struct pyline_table *t, uint64_t key, uint32_t place)
{
	t->known[key % PYLINE_KEYS].key = key;
	t->known[key % PYLINE_KEYS].place = (uint16_t)(place + 1);
}

static uint32_t put_text(struct pyline_table *t, const char *s, size_t n)
{
	uint32_t at = t->text_used;

	memcpy(t->text + at, s, n + 1);
	t->text_used += (uint32_t)n + 1;
	return at;
}

/* There are few paths: that of a nearby place is reused. */
static uint32_t put_file(struct pyline_table *t, const char *file, size_t n)
{
	for (uint32_t i = t->places; i > 0 && t->places - i < 256; i--)
		if (!strcmp(t->text + t->place[i - 1].file, file))
			return t->place[i - 1].file;
	return put_text(t, file, n);
}

static bool same_place(const struct pyline_table *t, const struct pyline_place *p, uint64_t hash,
		       const char *function, const char *file, uint32_t line)
{
	return p->hash == hash && p->line == line && !strcmp(t->text + p->function, function) &&
	       !strcmp(t->text + p->file, file);
}

int pyline_table_place(struct pyline_table *t, uint64_t key, const char *function, const char *file,
		       uint32_t line, bool user)
{
	size_t nf = strlen(function), np = strlen(file);
	uint64_t hash = crema_hash_more(CREMA_HASH_BEGIN, function, nf + 1);
	struct pyline_place *p;
	uint16_t *slot;

	hash = crema_hash_more(hash, file, np);
	hash = crema_hash_more(hash, &line, sizeof(line));
	for (uint64_t i = hash;; i++) {
		slot = &t->place_index[i % (2 * PYLINE_PLACES)];
		if (!*slot)
			break;
		if (same_place(t, &t->place[*slot - 1], hash, function, file, line)) {
			know(t, key, *slot - 1u);
			return *slot - 1;
		}
	}
	if (t->places == PYLINE_PLACES || t->text_used + nf + np + 2 > PYLINE_TEXT) {
		t->full = true;
		return -1;
	}
	p = &t->place[t->places];
	p->file = put_file(t, file, np);
	p->function = put_text(t, function, nf);
	p->hash = hash;
	p->line = line;
	p->user = user;
	*slot = (uint16_t)++t->places;
	know(t, key, t->places - 1);
	return (int)t->places - 1;
}

static uint64_t row_hash(const struct pyline_row *r, const uint16_t *place)
{
	uint64_t hash = crema_hash_more(CREMA_HASH_BEGIN, &r->span, sizeof(r->span));

	hash = crema_hash_more(hash, &r->prefix, sizeof(r->prefix));
	hash = crema_hash_more(hash, &r->dataset, sizeof(r->dataset));
	hash = crema_hash_more(hash, &r->pool, sizeof(r->pool));
	hash = crema_hash_more(hash, &r->why, sizeof(r->why));
	hash = crema_hash_more(hash, &r->outside, sizeof(r->outside));
	return crema_hash_more(hash, place, r->depth * sizeof(*place));
}

static bool same_row(const struct pyline_table *t, const struct pyline_row *a, uint64_t hash,
		     const struct pyline_row *b, const uint16_t *place)
{
	return a->hash == hash && a->span == b->span && a->prefix == b->prefix &&
	       a->dataset == b->dataset && a->pool == b->pool && a->why == b->why &&
	       a->outside == b->outside && a->depth == b->depth &&
	       (!a->depth || !memcmp(t->frame + a->first, place, a->depth * sizeof(*place)));
}

static bool has_room(const struct pyline_table *t, const struct pyline_row *like)
{
	return t->rows < (like->depth ? PYLINE_ROWS - PYLINE_ROWS_SPARE : PYLINE_ROWS) &&
	       t->frames + like->depth <= PYLINE_FRAMES;
}

struct pyline_row *pyline_table_row(struct pyline_table *t, const struct pyline_row *like,
				    const uint16_t *place)
{
	struct pyline_row full = {.span = like->span,
				  .prefix = like->prefix,
				  .dataset = like->dataset,
				  .pool = like->pool,
				  .outside = like->outside,
				  .why = PYLINES_FULL};
	uint64_t hash = row_hash(like, place);
	struct pyline_row *r;
	uint16_t *slot;

	for (uint64_t i = hash;; i++) {
		slot = &t->row_index[i % (2 * PYLINE_ROWS)];
		if (!*slot)
			break;
		if (same_row(t, &t->row[*slot - 1], hash, like, place))
			return &t->row[*slot - 1];
	}
	if (!has_room(t, like)) {
		t->full = true;
		return like->depth ? pyline_table_row(t, &full, place) : NULL;
	}
	r = &t->row[t->rows];
	memset(r, 0, sizeof(*r));
	r->hash = hash;
	r->span = like->span;
	r->prefix = like->prefix;
	r->dataset = like->dataset;
	r->pool = like->pool;
	r->why = like->why;
	r->outside = like->outside;
	r->depth = like->depth;
	r->first = t->frames;
	if (like->depth)
		memcpy(t->frame + t->frames, place, like->depth * sizeof(*place));
	t->frames += like->depth;
	*slot = (uint16_t)++t->rows;
	return r;
}

void pyline_table_clear(struct pyline_table *t)
{
	memset(t, 0, offsetof(struct pyline_table, text));
}
