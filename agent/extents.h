/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * extents.h - which bytes of each file row were read, and which belong to baskets that were used.
 *
 * The agent empties the ring in shared memory in each round. A reader compares the bytes of all
 * extents with the row's own, and uses them only if both are equal. So a full ring, ranges beyond
 * the limit or an agent that started late leave a file's re-reads unknown, never wrong. One thread.
 */
#ifndef CREMA_AGENT_EXTENTS_H
#define CREMA_AGENT_EXTENTS_H

#include "common/ranges.h"
#include "common/view.h"

#define EXTENTS_RANGES_KEPT 4096 /* of one file; more are not followed */
#define EXTENTS_RANGES_SENT 1024 /* as a list; for files with more only the sums */
#define EXTENTS_RANGES_ALL 65536 /* of all files: 1 MiB */

struct extents_file {
	struct ranges read, baskets;
	uint64_t read_bytes, basket_bytes; /* of all extents, repeated ones included */
	bool list_due;			   /* the lists have changed since they were sent */
};

struct extents {
	struct extents_file *file; /* CREMA_SHM_FILES; NULL: no memory, all is unknown */
};

void extents_init(struct extents *e);
void extents_release(struct extents *e);
/* Empties the ring; `ended`: nothing writes to it any more. */
void extents_take(struct extents *e, const struct view *v, bool ended);
/* True if the lists of row i are not sent yet. */
static inline bool extents_due(const struct extents *e, uint32_t i)
{
	return e->file && e->file[i].list_due;
}
/* Writes the key-value pairs of row i; all are unknown if the file changed between its reads. */
void extents_pack(struct extents *e, uint32_t i, bool unchanged, bool with_lists,
		  msgpack_packer *pk);

#endif
