/* SPDX-License-Identifier: BSD-3-Clause */
/* server_streams.c - hash table from (worker, stream) to its progress: open addressing. */
#include "collector/serve/server_streams.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_MIN 64u

/* Worker ids are random already; agents that choose them badly only slow the table down. */
static size_t hash(const uint8_t *worker)
{
	uint64_t a, b;

	memcpy(&a, worker, 8);
	memcpy(&b, worker + 8, 8);
	return (size_t)((a ^ (b * UINT64_C(0x9e3779b97f4a7c15))) * UINT64_C(0xff51afd7ed558ccd) >>
			16);
}

static int grow(struct server_streams *streams)
{
	size_t slots = streams->slots ? streams->slots * 2 : SLOTS_MIN, i, at;
	struct server_progress **slot = calloc(slots, sizeof(*slot));

	if (!slot)
		return -1;
	for (i = 0; i < streams->slots; i++) {
		if (!streams->slot[i])
			continue;
		at = hash(streams->slot[i]->worker) & (slots - 1);
		while (slot[at])
			at = (at + 1) & (slots - 1);
		slot[at] = streams->slot[i];
	}
	free(streams->slot);
	streams->slot = slot;
	streams->slots = slots;
	return 0;
}

struct server_progress *server_streams_get(struct server_streams *streams, const uint8_t *worker,
					   uint64_t stream)
{
	struct server_progress *progress;
	bool known = false;
	size_t at;

	if (streams->used * 2 >= streams->slots && grow(streams))
		return NULL;
	/* The streams of one worker lie in one chain, so a new worker is noticed on the way. */
	at = hash(worker) & (streams->slots - 1);
	while ((progress = streams->slot[at])) {
		if (!memcmp(progress->worker, worker, CREMA_WORKER_ID_BYTES)) {
			if (progress->stream == stream)
				return progress;
			known = true;
		}
		at = (at + 1) & (streams->slots - 1);
	}
	progress = calloc(1, sizeof(*progress));
	if (!progress)
		return NULL;
	memcpy(progress->worker, worker, CREMA_WORKER_ID_BYTES);
	progress->stream = stream;
	streams->slot[at] = progress;
	streams->used++;
	if (!known)
		streams->workers++;
	return progress;
}

void server_streams_release(struct server_streams *streams)
{
	size_t i;

	for (i = 0; i < streams->slots; i++)
		free(streams->slot[i]);
	free(streams->slot);
	memset(streams, 0, sizeof(*streams));
}
