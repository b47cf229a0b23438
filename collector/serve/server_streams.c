/* SPDX-License-Identifier: BSD-3-Clause */
/* server_streams.c - hash tables of streams and of workers: open addressing, linear probing. */
#include "collector/serve/server_streams.h"

#include <stdlib.h>
#include <string.h>

#include "common/auth.h"
#include "common/hash.h"

#define SLOTS_MIN 64u

/* What each entry of both tables begins with. */
struct key {
	uint8_t worker[CREMA_WORKER_ID_BYTES];
	uint64_t stream; /* of a worker: 0 */
};

struct streams_worker {
	struct key key;
	uint32_t streams; /* not 0 */
};

_Static_assert(sizeof(struct key) == CREMA_WORKER_ID_BYTES + 8 &&
		       offsetof(struct server_progress, stream) == offsetof(struct key, stream),
	       "keys are compared as bytes");

static size_t hash(const struct server_streams *streams, const struct key *key)
{
	uint64_t a = hash_worker(key->worker, streams->seed);

	a = hash_mix(a ^ hash_mix(key->stream ^ streams->seed[1]));
	return (size_t)(a ^ a >> 32);
}

static struct key key_of(const uint8_t *worker, uint64_t stream)
{
	struct key key = {.stream = stream};

	memcpy(key.worker, worker, sizeof(key.worker));
	return key;
}

static size_t home_of(const struct server_streams *s, const struct server_table *t,
		      const void *entry)
{
	struct key key;

	memcpy(&key, entry, sizeof(key));
	return hash(s, &key) & (t->slots - 1);
}

/* Where the entry of this key is, or would be. There is always a free slot. */
static size_t place_of(const struct server_streams *s, const struct server_table *t,
		       const void *key)
{
	size_t at = home_of(s, t, key);

	while (t->slot[at] && memcmp(t->slot[at], key, sizeof(struct key)) != 0)
		at = (at + 1) & (t->slots - 1);
	return at;
}

/* Room for one entry more. */
static int make_room(const struct server_streams *s, struct server_table *t)
{
	struct server_table grown = {.slots = t->slots ? t->slots * 2 : SLOTS_MIN, .used = t->used};
	size_t i;

	if (t->used * 2 < t->slots)
		return 0;
	grown.slot = calloc(grown.slots, sizeof(*grown.slot));
	if (!grown.slot)
		return -1;
	for (i = 0; i < t->slots; i++) {
		if (t->slot[i])
			grown.slot[place_of(s, &grown, t->slot[i])] = t->slot[i];
	}
	free(t->slot);
	*t = grown;
	return 0;
}

/* The entry of this key; if there is none a new one of `size` zeroed bytes behind the key. */
static void *entry_of(struct server_streams *s, struct server_table *t, const struct key *key,
		      size_t size)
{
	size_t at;

	if (make_room(s, t))
		return NULL;
	at = place_of(s, t, key);
	if (t->slot[at])
		return t->slot[at];
	t->slot[at] = calloc(1, size);
	if (!t->slot[at])
		return NULL;
	memcpy(t->slot[at], key, sizeof(*key));
	t->used++;
	return t->slot[at];
}

/* Those that follow in the same run are put where a look-up finds them without the hole. */
static void drop(const struct server_streams *s, struct server_table *t, void *entry)
{
	size_t mask = t->slots - 1, hole = place_of(s, t, entry), at, home;

	t->slot[hole] = NULL;
	t->used--;
	for (at = (hole + 1) & mask; t->slot[at]; at = (at + 1) & mask) {
		home = home_of(s, t, t->slot[at]);
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		t->slot[hole] = t->slot[at];
		t->slot[at] = NULL;
		hole = at;
	}
	free(entry);
}

static void release(struct server_table *t)
{
	size_t i;

	for (i = 0; i < t->slots; i++)
		free(t->slot[i]);
	free(t->slot);
}

struct server_progress *server_streams_get(struct server_streams *s, const uint8_t *worker,
					   uint64_t stream)
{
	struct key key = key_of(worker, stream), name = key_of(worker, 0);
	struct server_progress *progress;
	struct streams_worker *of;
	size_t before = s->streams.used;

	if (!s->streams.slots && auth_random(s->seed, sizeof(s->seed)))
		return NULL;
	of = entry_of(s, &s->workers, &name, sizeof(*of));
	progress = of ? entry_of(s, &s->streams, &key, sizeof(*progress)) : NULL;
	if (of && s->streams.used != before)
		of->streams++;
	else if (of && !of->streams)
		drop(s, &s->workers, of);
	return progress;
}

bool server_streams_full(const struct server_streams *s, const uint8_t *worker, uint64_t stream)
{
	struct key key = key_of(worker, stream), name = key_of(worker, 0);
	const struct streams_worker *of;

	if (!s->streams.slots || s->streams.slot[place_of(s, &s->streams, &key)])
		return false;
	of = s->workers.slot[place_of(s, &s->workers, &name)];
	return s->streams.used >= SERVER_STREAMS || (of && of->streams >= SERVER_STREAMS_OF_WORKER);
}

void server_streams_use(struct server_progress *progress)
{
	progress->users++;
}

void server_streams_leave(struct server_streams *s, struct server_progress *progress)
{
	struct key name = key_of(progress->worker, 0);
	struct streams_worker *of;

	if (--progress->users || progress->next)
		return;
	of = s->workers.slot[place_of(s, &s->workers, &name)];
	if (!--of->streams)
		drop(s, &s->workers, of);
	drop(s, &s->streams, progress);
}

void server_streams_release(struct server_streams *s)
{
	release(&s->streams);
	release(&s->workers);
	memset(s, 0, sizeof(*s));
}
