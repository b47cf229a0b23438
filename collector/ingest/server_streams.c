/* SPDX-License-Identifier: BSD-3-Clause */
/* server_streams.c - tables of streams and of workers. */
#include "collector/ingest/server_streams.h"

#include <stdlib.h>
#include <string.h>

#include "common/auth.h"
#include "common/hash.h"

/* Common beginning of the entries in both tables. */
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

static uint64_t hash(const struct server_streams *streams, const struct key *key)
{
	uint64_t a = hash_worker(key->worker, streams->seed);

	a = hash_mix(a ^ hash_mix(key->stream ^ streams->seed[1]));
	return a ^ a >> 32;
}

static bool same_key(const void *entry, const void *key)
{
	return !memcmp(entry, key, sizeof(struct key));
}

static struct key key_of(const uint8_t *worker, uint64_t stream)
{
	struct key key = {.stream = stream};

	memcpy(key.worker, worker, sizeof(key.worker));
	return key;
}

static void *find(const struct server_streams *s, const struct table *t, const struct key *key)
{
	return table_find(t, hash(s, key), same_key, key);
}

/* The entry of this key; if there is none, a new one with `size` zeroed bytes after the key. */
static void *entry_of(struct server_streams *s, struct table *t, const struct key *key, size_t size)
{
	void *entry = find(s, t, key);

	if (entry)
		return entry;
	entry = calloc(1, size);
	if (!entry)
		return NULL;
	memcpy(entry, key, sizeof(*key));
	if (table_add(t, hash(s, key), entry)) {
		free(entry);
		return NULL;
	}
	return entry;
}

static void drop(const struct server_streams *s, struct table *t, void *entry)
{
	struct key key;

	memcpy(&key, entry, sizeof(key));
	table_remove(t, hash(s, &key), entry);
	free(entry);
}

static void release(struct table *t)
{
	void *entry;
	size_t at = 0;

	while ((entry = table_next(t, &at)))
		free(entry);
	table_release(t);
}

struct server_progress *server_streams_get(struct server_streams *s, const uint8_t *worker,
					   uint64_t stream)
{
	struct key key = key_of(worker, stream), name = key_of(worker, 0);
	struct server_progress *progress;
	struct streams_worker *of;
	size_t before = s->streams.n;

	if (!s->streams.cap && auth_random(s->seed, sizeof(s->seed)))
		return NULL;
	of = entry_of(s, &s->workers, &name, sizeof(*of));
	progress = of ? entry_of(s, &s->streams, &key, sizeof(*progress)) : NULL;
	if (of && s->streams.n != before)
		of->streams++;
	else if (of && !of->streams)
		drop(s, &s->workers, of);
	return progress;
}

bool server_streams_full(const struct server_streams *s, const uint8_t *worker, uint64_t stream)
{
	struct key key = key_of(worker, stream), name = key_of(worker, 0);
	const struct streams_worker *of;

	if (!s->streams.cap || find(s, &s->streams, &key))
		return false;
	of = find(s, &s->workers, &name);
	return s->streams.n >= SERVER_STREAMS || (of && of->streams >= SERVER_STREAMS_OF_WORKER);
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
	of = find(s, &s->workers, &name);
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
