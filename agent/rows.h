/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rows.h - messages about the worker as a whole: FILE, CODEC, SERVER, SECTION, GAUGE, COLUMN,
 * TOTALS, DASK.
 *
 * All carry cumulative values. FILE, CODEC and SERVER rows are sent when their numbers have changed
 * since the last send. One thread.
 */
#ifndef CREMA_AGENT_ROWS_H
#define CREMA_AGENT_ROWS_H

#include "agent/drain.h"
#include "agent/extents.h"
#include "agent/fskinds.h"
#include "agent/outbox.h"
#include "common/view.h"

#define ROWS_QUIET_POLLS 3u /* a row unchanged for this long may be dropped */

struct rows {
	const struct view *view;
	struct outbox *out;
	const struct fskinds *kinds;
	uint64_t probe_boot_ns; /* of the last Dask text that was sent */
	struct buf text;	/* scratch for it */
	struct extents extents;
	uint64_t file_sum[CREMA_SHM_FILES];
	uint64_t codec_sum[CREMA_SHM_CODEC_ROWS];
	uint64_t server_sum[CREMA_SHM_SERVERS];
	struct row_sent {
		uint64_t seq, ticket;
		unsigned int polls; /* since it changed */
		bool any;
	} section_sent[CREMA_SHM_SECTIONS], gauge_sent[CREMA_SHM_GAUGES],
		column_sent[CREMA_SHM_COLUMNS];
	unsigned int columns_polls; /* since the worker was found idle */
	const char *note;	    /* an additional note in TOTALS; NULL or "": none */
};

/* Counters of everything so far: what was folded, and the live blocks. */
struct rows_sums {
	struct crema_counters tasks, unattributed;
	uint64_t pool[CREMA_TIMES];
	uint64_t unattributed_unknown; /* bit i: count[i] of the unattributed is unknown */
};

void rows_init(struct rows *r, const struct view *v, struct outbox *out,
	       const struct fskinds *kinds);
void rows_release(struct rows *r);
/* All rows are sent again, changed or not. */
void rows_forget(struct rows *r);
/* `last`: the worker has ended; rows are sent as records that must arrive. */
void rows_files(struct rows *r, bool last);
void rows_codecs(struct rows *r, bool last);
void rows_servers(struct rows *r, bool last);
void rows_sections(struct rows *r, bool last);
/* busy: tasks run; then only once a minute. */
void rows_columns(struct rows *r, bool busy, bool last);
/* What no task could measure is unknown in the sums too. */
void rows_totals(struct rows *r, const struct drain_unknown *unknown, bool last, uint64_t boot_ns);
void rows_dask(struct rows *r);
/* A map of all counters under `key`. pool NULL: without the pool threads' times. */
void rows_pack_counters(msgpack_packer *pk, const char *key, const struct crema_counters *c,
			const uint64_t *pool, const struct drain_unknown *unknown);
/* "FILE:LINE FUNCTION". */
void rows_pack_line(msgpack_packer *pk, const struct view *v, const struct crema_line *line);
/* For a row with a seq: a copy made while nothing was written. */
void rows_copy(void *to, const void *from, size_t bytes, const uint64_t *seq);
/* True if the row is to be sent: its seq has changed; or once more, as a record that must arrive,
 * after a quiet time. When that record is safe, *safe_seq frees the row for reuse. */
bool rows_due(struct rows *r, struct row_sent *sent, const uint64_t *live, uint64_t *safe_seq,
	      enum outbox_class *class);
/* What could not be measured of a row's tasks. */
struct drain_unknown rows_unknown(const struct rows *r, uint32_t time_unknown,
				  uint64_t count_unknown, uint32_t fs_mask);
/* A sum of cumulative numbers that changes when one of them does. */
uint64_t rows_sum_of(const uint64_t *number, size_t n);
void rows_sum(const struct view *v, bool ended, struct rows_sums *out);

#endif
