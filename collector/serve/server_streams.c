/* SPDX-License-Identifier: BSD-3-Clause */
/* server_streams.c - hash tables of streams and of workers: open addressing, linear probing. */
#include "collector/serve/server_streams.h"

#include <stdlib.h>
#include <string.h>

#include "common/auth.h"

#define SLOTS_MIN 64u

static uint64_t mix(uint64_t a)
{
	a = (a ^ a >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return (a ^ a >> 32) * UINT64_C(0xd6e8feb86659fd93);
}

static size_t hash(const struct server_streams *streams, const uint8_t *worker, uint64_t stream)
{
	uint64_t a, b;

	memcpy(&a, worker, 8);
	memcpy(&b, worker + 8, 8);
	a = mix(mix(a ^ streams->seed[0]) ^ b ^ streams->seed[1]);
	a = mix(a ^ mix(stream ^ streams->seed[1]));
	return (size_t)(a ^ a >> 32);
}

static bool is_one(const struct server_progress *p, const uint8_t *worker, uint64_t stream)
{
	return p->stream == stream && !memcmp(p->worker, worker, CREMA_WORKER_ID_BYTES);
}

/* Where it is, or would be. There is always a free slot. */
static size_t place_of(const struct server_streams *s, const uint8_t *worker, uint64_t stream)
{
	size_t at = hash(s, worker, stream) & (s->slots - 1);

	while (s->slot[at] && !is_one(s->slot[at], worker, stream))
		at = (at + 1) & (s->slots - 1);
	return at;
}

static size_t worker_place(const struct server_streams *s, const uint8_t *worker)
{
	size_t at = hash(s, worker, 0) & (s->worker_slots - 1);

	while (s->worker[at].streams && memcmp(s->worker[at].id, worker, CREMA_WORKER_ID_BYTES))
		at = (at + 1) & (s->worker_slots - 1);
	return at;
}

static int grow_streams(struct server_streams *s)
{
	struct server_streams grown = *s;
	size_t i;

	grown.slots = s->slots ? s->slots * 2 : SLOTS_MIN;
	grown.slot = calloc(grown.slots, sizeof(*grown.slot));
	if (!grown.slot)
		return -1;
	for (i = 0; i < s->slots; i++) {
		if (s->slot[i])
			grown.slot[place_of(&grown, s->slot[i]->worker, s->slot[i]->stream)] =
				s->slot[i];
	}
	free(s->slot);
	*s = grown;
	return 0;
}

static int grow_workers(struct server_streams *s)
{
	struct server_streams grown = *s;
	size_t i;

	grown.worker_slots = s->worker_slots ? s->worker_slots * 2 : SLOTS_MIN;
	grown.worker = calloc(grown.worker_slots, sizeof(*grown.worker));
	if (!grown.worker)
		return -1;
	for (i = 0; i < s->worker_slots; i++) {
		if (s->worker[i].streams)
			grown.worker[worker_place(&grown, s->worker[i].id)] = s->worker[i];
	}
	free(s->worker);
	*s = grown;
	return 0;
}

static int make_room(struct server_streams *s)
{
	if (!s->slots && auth_random(s->seed, sizeof(s->seed)))
		return -1;
	if (s->used * 2 >= s->slots && grow_streams(s))
		return -1;
	return s->workers * 2 >= s->worker_slots ? grow_workers(s) : 0;
}

struct server_progress *server_streams_get(struct server_streams *s, const uint8_t *worker,
					   uint64_t stream)
{
	struct server_progress *progress;
	struct server_streams_worker *of;
	size_t at;

	if (make_room(s))
		return NULL;
	at = place_of(s, worker, stream);
	if (s->slot[at])
		return s->slot[at];
	progress = calloc(1, sizeof(*progress));
	if (!progress)
		return NULL;
	memcpy(progress->worker, worker, CREMA_WORKER_ID_BYTES);
	progress->stream = stream;
	s->slot[at] = progress;
	s->used++;
	of = &s->worker[worker_place(s, worker)];
	memcpy(of->id, worker, sizeof(of->id));
	s->workers += !of->streams++;
	return progress;
}

bool server_streams_full(const struct server_streams *s, const uint8_t *worker, uint64_t stream)
{
	if (!s->slots || s->slot[place_of(s, worker, stream)])
		return false;
	return s->used >= SERVER_STREAMS ||
	       s->worker[worker_place(s, worker)].streams >= SERVER_STREAMS_OF_WORKER;
}

void server_streams_use(struct server_progress *progress)
{
	progress->users++;
}

/* Those that follow in the same run are put where a look-up finds them without the hole. */
static void close_hole(struct server_streams *s, size_t hole)
{
	size_t mask = s->slots - 1, at, home;

	for (at = (hole + 1) & mask; s->slot[at]; at = (at + 1) & mask) {
		home = hash(s, s->slot[at]->worker, s->slot[at]->stream) & mask;
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		s->slot[hole] = s->slot[at];
		s->slot[at] = NULL;
		hole = at;
	}
}

static void close_worker_hole(struct server_streams *s, size_t hole)
{
	size_t mask = s->worker_slots - 1, at, home;

	for (at = (hole + 1) & mask; s->worker[at].streams; at = (at + 1) & mask) {
		home = hash(s, s->worker[at].id, 0) & mask;
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		s->worker[hole] = s->worker[at];
		s->worker[at].streams = 0;
		hole = at;
	}
}

void server_streams_leave(struct server_streams *s, struct server_progress *progress)
{
	size_t at;

	if (--progress->users || progress->next)
		return;
	at = worker_place(s, progress->worker);
	if (!--s->worker[at].streams) {
		s->workers--;
		close_worker_hole(s, at);
	}
	at = place_of(s, progress->worker, progress->stream);
	s->slot[at] = NULL;
	s->used--;
	close_hole(s, at);
	free(progress);
}

void server_streams_release(struct server_streams *streams)
{
	size_t i;

	for (i = 0; i < streams->slots; i++)
		free(streams->slot[i]);
	free(streams->slot);
	free(streams->worker);
	memset(streams, 0, sizeof(*streams));
}
