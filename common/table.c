/* SPDX-License-Identifier: BSD-3-Clause */
/* table.c - arena, pointer table, interned text. */
#include "common/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fnv.h"

#define ARENA_BLOCK (256u << 10)

struct arena_block {
	struct arena_block *next;
	uint64_t pad;
	unsigned char bytes[];
};

struct table_slot {
	uint64_t hash;
	void *item;
};

void *arena_get(struct arena *a, size_t n)
{
	return arena_bytes(a, (n + 15) & ~(size_t)15);
}

void *arena_bytes(struct arena *a, size_t n)
{
	struct arena_block *b;
	size_t size;
	void *p;

	if (!a->blocks || n > a->size - a->used) {
		size = n > ARENA_BLOCK ? n : ARENA_BLOCK;
		b = calloc(1, sizeof(*b) + size);
		if (!b)
			return NULL;
		b->next = a->blocks;
		a->blocks = b;
		a->used = 0;
		a->size = size;
	}
	p = a->blocks->bytes + a->used;
	a->used += n;
	return p;
}

void arena_release(struct arena *a)
{
	struct arena_block *b, *next;

	for (b = a->blocks; b; b = next) {
		next = b->next;
		free(b);
	}
	memset(a, 0, sizeof(*a));
}

void *table_find(const struct table *t, uint64_t hash,
		 bool (*same)(const void *item, const void *key), const void *key)
{
	size_t i;

	if (!t->cap)
		return NULL;
	for (i = hash & (t->cap - 1); t->slots[i].item; i = (i + 1) & (t->cap - 1)) {
		if (t->slots[i].hash == hash && same(t->slots[i].item, key))
			return t->slots[i].item;
	}
	return NULL;
}

static void table_put(struct table *t, uint64_t hash, void *item)
{
	size_t i = hash & (t->cap - 1);

	while (t->slots[i].item)
		i = (i + 1) & (t->cap - 1);
	t->slots[i].hash = hash;
	t->slots[i].item = item;
}

static int table_resize(struct table *t)
{
	struct table old = *t;
	size_t i;

	t->cap = old.cap ? old.cap * 2 : 64;
	t->slots = calloc(t->cap, sizeof(*t->slots));
	if (!t->slots) {
		*t = old;
		return -ENOMEM;
	}
	for (i = 0; i < old.cap; i++) {
		if (old.slots[i].item)
			table_put(t, old.slots[i].hash, old.slots[i].item);
	}
	free(old.slots);
	return 0;
}

int table_add(struct table *t, uint64_t hash, void *item)
{
	if ((t->n + 1) * 2 > t->cap && table_resize(t))
		return -ENOMEM;
	table_put(t, hash, item);
	t->n++;
	return 0;
}

/* Following items without a gap move to where a search that starts at their hash finds them. */
void table_remove(struct table *t, uint64_t hash, const void *item)
{
	size_t mask = t->cap - 1, hole = hash & mask, at;

	while (t->slots[hole].item != item)
		hole = (hole + 1) & mask;
	t->n--;
	for (at = (hole + 1) & mask; t->slots[at].item; at = (at + 1) & mask) {
		if (((at - t->slots[at].hash) & mask) < ((at - hole) & mask))
			continue;
		t->slots[hole] = t->slots[at];
		hole = at;
	}
	t->slots[hole].item = NULL;
}

void *table_next(const struct table *t, size_t *at)
{
	while (*at < t->cap) {
		void *item = t->slots[(*at)++].item;

		if (item)
			return item;
	}
	return NULL;
}

void table_release(struct table *t)
{
	free(t->slots);
	memset(t, 0, sizeof(*t));
}

static uint64_t mix(uint64_t h)
{
	h ^= h >> 33;
	h *= UINT64_C(0xff51afd7ed558ccd);
	h ^= h >> 29;
	return h;
}

uint64_t hash_bytes(uint64_t seed, const void *p, size_t n)
{
	return mix(crema_hash_more(seed ^ CREMA_HASH_BEGIN, p, n));
}

uint64_t hash_pair(uint64_t a, uint64_t b)
{
	return mix(mix(a) * UINT64_C(0x9e3779b97f4a7c15) + b);
}

/* For names only, eight bytes at a time: it is in no output, unlike hash_bytes(). */
static uint64_t hash_name(const char *p, size_t n)
{
	uint64_t h = n, word;

	for (; n >= sizeof(word); p += sizeof(word), n -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = mix(h ^ word);
	}
	word = 0;
	memcpy(&word, p, n);
	return mix(mix(h ^ word));
}

struct interned_name {
	size_t len;
	char text[];
};

static bool same_name(const void *item, const void *key)
{
	const struct interned_name *n = item;
	const struct text *t = key;

	return n->len == t->len && !memcmp(n->text, t->ptr, t->len);
}

const char *names_add(struct names *s, struct text t)
{
	struct interned_name *n;
	uint64_t hash;

	if (!t.ptr)
		return NULL;
	hash = hash_name(t.ptr, t.len);
	n = table_find(&s->table, hash, same_name, &t);
	if (n)
		return n->text;
	n = arena_get(s->arena, sizeof(*n) + t.len + 1);
	if (!n)
		return NULL;
	n->len = t.len;
	memcpy(n->text, t.ptr, t.len);
	if (table_add(&s->table, hash, n))
		return NULL;
	return n->text;
}

const char *names_find(const struct names *s, const char *text)
{
	struct text t = {text, strlen(text)};
	struct interned_name *n = table_find(&s->table, hash_name(t.ptr, t.len), same_name, &t);

	return n ? n->text : NULL;
}

void *array_grow(void *v, size_t *n, size_t *cap, size_t item)
{
	unsigned char *p;
	size_t want;

	memcpy(&p, v, sizeof(p));
	if (*n == *cap) {
		/* long ones grow by a quarter: unused space costs memory, too */
		want = *cap < 64 ? *cap * 2 + 8 : *cap + *cap / 4;
		p = reallocarray(p, want, item);
		if (!p)
			return NULL;
		memcpy(v, &p, sizeof(p));
		*cap = want;
	}
	memset(p + *n * item, 0, item);
	return p + (*n)++ * item;
}

void *table_new(struct table *t, uint64_t hash, struct arena *a, size_t item, void *v, size_t *n,
		size_t *cap)
{
	void *made = arena_get(a, item), *at;

	at = made ? array_grow(v, n, cap, sizeof(made)) : NULL;
	if (!at)
		return NULL;
	if (table_add(t, hash, made)) {
		--*n;
		return NULL;
	}
	memcpy(at, &made, sizeof(made));
	return made;
}
