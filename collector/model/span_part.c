/* SPDX-License-Identifier: BSD-3-Clause */
/* span_part.c - see span_part.h. */
#include "collector/model/span_part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/model/model.h"
#include "fnv.h"

#define NUMBER_BYTES 128

bool span_is_plain(struct text span)
{
	return span.len >= sizeof(SPAN_PLAIN) - 1 &&
	       !memcmp(span.ptr, SPAN_PLAIN, sizeof(SPAN_PLAIN) - 1);
}

static bool same_name(const void *item, const void *key)
{
	return ((const struct span_part *)item)->name == key;
}

const struct span_part *span_part_find(const struct model *m, const char *name)
{
	return table_find(&m->part_table, hash_pair((uintptr_t)name, 1), same_name, name);
}

static bool same_span(const void *item, const void *key)
{
	return ((const struct span_part *)item)->span == key;
}

const struct span_part *span_part_first(const struct model *m, const char *span)
{
	return table_find(&m->part_table, hash_pair((uintptr_t)span, 2), same_span, span);
}

const char *span_part_span(const struct model *m, const char *name)
{
	const struct span_part *p = name ? span_part_find(m, name) : NULL;

	return p ? p->span : name;
}

const char *span_part_owner(const struct model *m, const char *name)
{
	const struct span_part *p = name ? span_part_find(m, name) : NULL;

	return p && p->block ? p->block : span_part_span(m, name);
}

/* "SPAN.GENERATIONk...", "SPAN.0bBLOCK", or a whole span. A generation may contain a dot. */
static void parse(struct model *m, struct span_part *p, struct text name, struct text *span)
{
	const char *at = memchr(name.ptr, '.', name.len);
	char number[NUMBER_BYTES], *end;
	size_t n;

	if (!at || span_is_plain(name))
		return;
	n = (size_t)(name.ptr + name.len - at) - 1;
	if (!n || n >= sizeof(number))
		return;
	memcpy(number, at + 1, n);
	number[n] = 0;
	p->generation = strtod(number, &end);
	if (end == number || !*end || !strchr("bcpmsu", *end))
		return;
	span->len = (size_t)(at - name.ptr);
	if (*end == 'b') {
		p->block = model_text(m, (struct text){at + 1 + (end + 1 - number),
						       n - (size_t)(end + 1 - number)});
		return;
	}
	p->kind = *end;
	if (strchr("mu", *end)) {
		p->graph = p->graph_before = (uint32_t)strtoul(end + 1, NULL, 16);
	} else {
		p->graph = (uint32_t)crema_hash_more(CREMA_HASH_BEGIN, name.ptr, name.len);
		p->graph_before = (uint32_t)crema_hash_more(CREMA_HASH_BEGIN, at, n + 1);
	}
}

static int smallest_add(struct smallest *s, uint64_t hash)
{
	size_t i = s->n;

	while (i && s->v[i - 1] > hash)
		i--;
	if ((i && s->v[i - 1] == hash) || i == SMALLEST_MAX)
		return 0;
	if (s->n < SMALLEST_MAX && !ARRAY_NEW(s))
		return -ENOMEM;
	memmove(s->v + i + 1, s->v + i, (s->n - 1 - i) * sizeof(*s->v));
	s->v[i] = hash;
	return 0;
}

bool smallest_has(const struct smallest *s, uint64_t hash)
{
	size_t i;

	for (i = 0; i < s->n && s->v[i] < hash; i++)
		;
	return i < s->n && s->v[i] == hash;
}

static struct span_part *part_new(struct model *m, const struct span_part *like, const char *name,
				  struct text span)
{
	struct span_part *p = arena_get(&m->arena, sizeof(*p)), **at, *first;

	at = p ? ARRAY_NEW(&m->parts) : NULL;
	if (!at)
		return NULL;
	*at = p;
	*p = *like;
	p->name = name;
	p->span = model_text(m, span);
	first = table_find(&m->part_table, hash_pair((uintptr_t)p->span, 2), same_span, p->span);
	if (first) {
		p->sibling = first->sibling;
		first->sibling = p;
	} else if (table_add(&m->part_table, hash_pair((uintptr_t)p->span, 2), p)) {
		return NULL;
	}
	return table_add(&m->part_table, hash_pair((uintptr_t)name, 1), p) ? NULL : p;
}

int span_part_feed(struct model *m, const struct task_record *r)
{
	const char *name = model_task_text(m, TASK_F_span, r->span), *prefix;
	struct span_part *p, like = {0};
	struct text span = r->span;

	if (!name)
		return m->error;
	p = table_find(&m->part_table, hash_pair((uintptr_t)name, 1), same_name, name);
	if (!p) {
		parse(m, &like, r->span, &span);
		p = part_new(m, &like, name, span);
	}
	if (!p)
		return -ENOMEM;
	prefix = TASK_KNOWN(r, prefix) ? model_task_text(m, TASK_F_prefix, r->prefix) : NULL;
	if (p->prefix && prefix && p->prefix != prefix)
		p->prefixes = true;
	p->prefix = p->prefix ? p->prefix : prefix;
	if (TASK_KNOWN(r, flags) && r->flags & CREMA_TASK_USERS_SPAN)
		p->users = true;
	if (TASK_KNOWN(r, key_hash) && smallest_add(&p->keys, r->key_hash))
		return -ENOMEM;
	return r->consumes ? smallest_add(&p->consumed, r->consumes) : 0;
}

void span_parts_release(struct model *m)
{
	size_t i;

	for (i = 0; i < m->parts.n; i++) {
		free(m->parts.v[i]->keys.v);
		free(m->parts.v[i]->consumed.v);
	}
	free(m->parts.v);
	table_release(&m->part_table);
}
