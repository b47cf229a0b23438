/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.c - texts in shared memory, each stored once.
 *
 * Lock-free: one atomic add reserves space, the text is written, and compare-and-swap publishes its
 * id in the index. A thread that loses that race only wastes its copy. Nothing is removed: bulk
 * texts stop before the others, so that file names cannot hide which run a task belongs to.
 */
#include <string.h>

#include "shim/shim.h"

uint64_t arena_hash(const char *text, uint32_t bytes)
{
	return crema_hash_more(CREMA_HASH_BEGIN, text, bytes);
}

const char *arena_text(uint32_t id)
{
	return id ? crema_shm->strings + id + 4 : "";
}

static int same(uint32_t id, const char *text, uint32_t bytes)
{
	uint32_t have;

	memcpy(&have, crema_shm->strings + id, 4);
	return have == bytes && !memcmp(crema_shm->strings + id + 4, text, bytes);
}

struct room {
	uint32_t bytes, texts;
};
static const struct room whole = {CREMA_SHM_STRINGS, CREMA_SHM_TEXTS},
			 bulk = {CREMA_SHM_STRINGS_BULK, CREMA_SHM_TEXTS_BULK};

static uint32_t arena_add(const char *text, uint32_t bytes, const struct room *room)
{
	uint32_t need = (4 + bytes + 1 + 3) & ~3u;
	uint32_t at;

	if (LOAD(&crema_shm->strings_used) + need > room->bytes ||
	    LOAD(&crema_shm->texts) >= room->texts)
		return 0;
	at = ADD(&crema_shm->strings_used, need);
	if (at + need > CREMA_SHM_STRINGS)
		return 0; /* the last bytes stay unused: the next caller is refused at once */
	memcpy(crema_shm->strings + at + 4, text, bytes);
	crema_shm->strings[at + 4 + bytes] = 0;
	memcpy(crema_shm->strings + at, &bytes, 4);
	return at;
}

static uint32_t find_or_add(const char *text, uint32_t bytes, const struct room *room)
{
	uint32_t at = (uint32_t)arena_hash(text, bytes), mine = 0;

	if (!bytes)
		return 0;
	if (bytes > 32768)
		bytes = 32768;
	for (uint32_t i = 0; i < CREMA_SHM_STRING_INDEX; i++, at++) {
		uint32_t *slot = &crema_shm->string_index[at % CREMA_SHM_STRING_INDEX];
		uint32_t id = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

		if (!id) {
			if (!mine)
				mine = arena_add(text, bytes, room);
			if (!mine)
				break;
			if (__atomic_compare_exchange_n(slot, &id, mine, 0, __ATOMIC_RELEASE,
							__ATOMIC_ACQUIRE)) {
				ADD(&crema_shm->texts, 1);
				return mine;
			}
		}
		if (same(id, text, bytes))
			return id;
	}
	ADD(&crema_shm->totals.strings_refused, 1);
	return 0;
}

uint32_t arena_id(const char *text, uint32_t bytes)
{
	return find_or_add(text, bytes, &whole);
}

uint32_t arena_bulk_id(const char *text, uint32_t bytes)
{
	return find_or_add(text, bytes, &bulk);
}
