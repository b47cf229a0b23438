/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_layers.h - one file's bytes, layer by layer, over all workers and spans of a run.
 *
 * read = read again + of baskets used + outside them (metadata, and gaps that a read bridges).
 * The three are exact or unknown: they need every stretch that every worker read, and the workers'
 * lists of them; layers_add() compares with the row's own counts.
 */
#ifndef CREMA_COLLECTOR_FILE_LAYERS_H
#define CREMA_COLLECTOR_FILE_LAYERS_H

#include "collector/model/model.h"

struct file_layers {
	struct value basket_calls, page_calls, basket_bytes, basket_raw_bytes;
	struct value large_read_bytes, cached_bytes, readahead_bytes;
	struct value worker_unique_bytes; /* distinct within each worker and span */
	struct ranges read, baskets;	  /* of all of them */
	bool read_incomplete, baskets_incomplete;
	uint64_t chunks;	/* counted chunks of the file */
	struct value requested; /* coffea's bytesread of these */
};

/* The file's values as they are said; all may be unknown. */
struct layer_values {
	struct value unique_bytes, reread_bytes, worker_reread_bytes;
	struct value unique_basket_bytes, read_basket_bytes, outside_bytes;
	struct value small_read_bytes;
	struct value amplification, requested_amplification;
};

/* 0 or -ENOMEM. */
int layers_add(struct file_layers *l, const struct file_row *f, bool first);
void layers_release(struct file_layers *l);
/* network_read_bytes: of a file on a server, where its requests tell it. */
void layers_values(const struct file_layers *l, struct value read_bytes, struct value mapped_bytes,
		   struct value network_read_bytes, struct layer_values *out);

#endif
