/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dropped.h - runs whose records were dropped from the journal, and what remains of them.
 *
 * journal/00000000000000000000-dropped.crema is a frame file that is always replaced as a whole
 * (`crema collect --keep, --max-bytes`; collector/retain/retain.h). Its frames:
 *
 * - CHECKPOINT: what a start needs from these segments and all others of that time, in case none of
 *   the remaining ones begins with a whole checkpoint (journal/checkpoint.h);
 * - DROPPED: {below_ns, dropped_ns}. Segments created before below_ns are gone, even if their files
 *   are still there;
 * - DROPPED_RUN, one for each dropped run: {run, kind, why, spans, plain, start_ns, stop_ns,
 *   dropped_ns, metrics: {id: value}};
 * - CARRY, CARRIED, for each worker that had frames in those segments and may continue: which
 *   records of its streams they held, its latest totals, clocks and goodbye, and its modules.
 *
 * Earlier versions wrote no checkpoint: DROPPED had the `sums` of live numbers, and CARRY had
 * `ended` and listed all workers.
 *
 * This file is read first. A run is therefore known by its records or by its totals, never both:
 * records of a dropped run that are in newer segments, or arrive later, are left out.
 */
#ifndef CREMA_COLLECTOR_MODEL_DROPPED_H
#define CREMA_COLLECTOR_MODEL_DROPPED_H

#include "collector/emit/emit.h"
#include "collector/model/model.h"

#define DROPPED_FILE "00000000000000000000-dropped.crema"
#define DROPPED_WINDOW_NS UINT64_C(1000000000)

/* The numbers of a span's records that begin and end tasks. */
struct span_count {
	const char *span;
	uint64_t begun, ended;
};

struct dropped_value {
	const char *id; /* from contract/metrics.def */
	struct value v;
};

struct dropped_run {
	const char *id, *kind, *why;
	const char *by;		 /* the version of crema that computed them; NULL: unknown */
	const char *state;	 /* NULL: unknown */
	uint64_t chunk_attempts; /* including those that do not count */
	ARRAY(struct span_count) counts; /* of a run whose records remain (run_totals.h) */
	struct texts spans;
	bool plain; /* its spans do not identify it; its time is compared, too */
	uint64_t start_ns, stop_ns, dropped_ns;
	ARRAY(struct dropped_value) values;
};

/* Parts of model_feed(): 0 or -ENOMEM. */
int dropped_feed(struct model *m, const struct crema_frame_header *head,
		 const msgpack_object *root);
/* Removes the attempts of dropped runs and counts them in m->dropped_attempts. */
int dropped_filter(struct model *m);
void dropped_release(struct model *m);

/* Like runs_find(), among the dropped runs; "last" matches none. */
const struct dropped_run *dropped_find(const struct model *m, const char *which);
struct value dropped_value(const struct dropped_run *d, const char *id);
/* Packs its DROPPED_RUN or RUN_TOTALS frame: 0, -EMSGSIZE or -ENOMEM. */
int dropped_pack(const struct dropped_run *d, uint8_t type, struct buf *out);

#endif
