/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.h - an arena, a hash table of pointers, interned text, arrays.
 *
 * The arena frees everything at once and returns zeroed, 16-aligned memory. The table stores (hash,
 * item) and calls `same` to compare; it never owns an item. If a peer chooses the keys, the
 * caller's hash has a secret seed (hash.h). Equal text interns to the same pointer, so names
 * compare by pointer. One thread; -ENOMEM or NULL on failure.
 */
#ifndef CREMA_COMMON_TABLE_H
#define CREMA_COMMON_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/pack.h"

struct arena {
	struct arena_block *blocks;
	size_t used, size; /* of the newest block */
};

void *arena_get(struct arena *a, size_t n);
/* Unaligned and consecutive: not to be mixed with arena_get() in one arena. */
void *arena_bytes(struct arena *a, size_t n);
void arena_release(struct arena *a);

/* Zeroed: empty. */
struct table {
	struct table_slot *slots;
	size_t cap, n;
};

void *table_find(const struct table *t, uint64_t hash,
		 bool (*same)(const void *item, const void *key), const void *key);
int table_add(struct table *t, uint64_t hash, void *item);
/* The item itself must be in the table. */
void table_remove(struct table *t, uint64_t hash, const void *item);
/* The next item in no order, NULL at the end; *at begins with 0. No add or remove in between. */
void *table_next(const struct table *t, size_t *at);
void table_release(struct table *t);

uint64_t hash_bytes(uint64_t seed, const void *p, size_t n);
uint64_t hash_pair(uint64_t a, uint64_t b);

struct names {
	struct arena *arena;
	struct table table;
};

/* NULL for unknown text, or if out of memory. */
const char *names_add(struct names *s, struct text t);
/* The interned text if there is one, else NULL. */
const char *names_find(const struct names *s, const char *text);

/*
 * Space for one more element at the end of an array { item *v; size_t n, cap; }: its address,
 * zeroed, or NULL. `v` is a pointer to the array's pointer.
 */
void *array_grow(void *v, size_t *n, size_t *cap, size_t item);
#define ARRAY_NEW(a) array_grow(&(a)->v, &(a)->n, &(a)->cap, sizeof(*(a)->v))

/*
 * A zeroed item of the arena that is also in the table and the last of an array of pointers { item
 * **v; size_t n, cap; }. NULL: none of this was done.
 */
void *table_new(struct table *t, uint64_t hash, struct arena *a, size_t item, void *v, size_t *n,
		size_t *cap);
#define TABLE_NEW(t, hash, arena, a)                                                               \
	table_new(t, hash, arena, sizeof(**(a)->v), &(a)->v, &(a)->n, &(a)->cap)

#endif
