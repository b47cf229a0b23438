/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attempt.h - one execution of a task as the model keeps it: small, because there may be millions.
 *
 * Fields that are read often are members. Texts that many attempts share, and the mask of known
 * numbers, are stored once (struct attempt_shared). All numbers are packed after `c`: one bit for
 * each that is not 0, then those numbers at 7 bits per byte. An attempt takes about 335 bytes, its
 * key included.
 *
 *	count_of(&a->c, CREMA_C_read_bytes)	one number
 *	attempt_u64(a, TASK_F_events)		one field; unknown stays unknown
 *	attempt_detail(a, &d)			everything: for callers that need many fields
 *
 * own_ns(), pool_ns() and count_of() take the packed numbers of an attempt and plain counters
 * alike.
 */
#ifndef CREMA_COLLECTOR_MODEL_ATTEMPT_H
#define CREMA_COLLECTOR_MODEL_ATTEMPT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "collector/emit/emit.h"
#include "common/task.h"

enum attempt_state { ATTEMPT_RUNNING, ATTEMPT_OK, ATTEMPT_ERRED, ATTEMPT_KILLED, ATTEMPT_LOST };

struct counters {
	uint64_t own[CREMA_TIMES], pool[CREMA_TIMES], count[CREMA_COUNTS];
	uint64_t count_known;
	uint32_t own_known, pool_known;
};

#define ATTEMPT_TYPE_u64 uint64_t
#define ATTEMPT_TYPE_i64 int64_t
#define ATTEMPT_TYPE_f64 double
#define ATTEMPT_TYPE_str const char *

/* Everything that the records of one attempt contain. */
struct attempt_detail {
	uint64_t known; /* bit TASK_F_x */
#define FIELD(name, type, help) ATTEMPT_TYPE_##type name;
#include "task_fields.def"
#undef FIELD
	struct counters c;
};

static inline bool detail_knows(const struct attempt_detail *d, enum task_field field)
{
	return d->known >> field & 1;
}

struct attempt_shared {
	uint64_t count_known;
	uint32_t own_known, pool_known;
	const char *status, *function, *worker_address, *worker_name, *fs_unknown, *treename;
	const char *error_type, *error_text, *error_cause, *sections;
};

struct packed {
	const struct attempt_shared *shared;
	unsigned char *bytes;
};

struct attempt {
	struct worker *worker;
	struct packed c;
	uint64_t known;				    /* bit TASK_F_x */
	uint64_t attempt, key_hash, flags, wall_ns; /* the fields with these names, as the texts */
	const char *key, *prefix, *span, *dataset, *filename, *columns;
	uint64_t begin_ns, end_ns; /* UTC, set by model_close(); 0: no clock; end_ns: time of the
				      last message if there is no end */
	const char *waste_reason;
	uint32_t rev;		      /* UINT32_MAX stands for all revisions above it */
	uint32_t chunk_id;	      /* counted from 1; 0: no chunk */
	uint16_t room;		      /* for the packed bytes */
	enum attempt_state state : 8; /* set by model_close() */
	bool ended;		      /* has an end record */
	bool abandoned;	  /* ended with its worker, and nothing came after; set by runs_build() */
	bool counted;	  /* set by runs_build(), as are waste_reason and chunk_id */
	uint16_t segment; /* of the journal: the one with its first record */
};

_Static_assert(sizeof(struct attempt) <= 152, "there may be millions");

/* UTC seconds; NaN: no clock. */
static inline double utc_seconds(uint64_t utc_ns)
{
	return utc_ns ? (double)utc_ns / 1e9 : (double)NAN;
}

static inline double attempt_begin(const struct attempt *a)
{
	return utc_seconds(a->begin_ns);
}

static inline double attempt_end(const struct attempt *a)
{
	return utc_seconds(a->end_ns);
}

struct model;

void attempt_detail(const struct attempt *a, struct attempt_detail *d);
/* Stores all of it: 0 or -ENOMEM. */
int attempt_keep(struct model *m, struct attempt *a, const struct attempt_detail *d);

/* One field; null if it is unknown. Except for texts of `shared`, fields that are members are
 * not here. */
struct value attempt_u64(const struct attempt *a, enum task_field field);
/* Whether only its wall time is known: it ran in another process or in the event loop. */
bool attempt_is_unmeasured(const struct attempt *a);
/* Whether it kept one of its worker's threads from other tasks. Dask counts a coroutine as one of
 * the tasks that it runs at a time, as many as threads; but not an actor's. */
bool attempt_holds_thread(const struct attempt *a);
struct value attempt_i64(const struct attempt *a, enum task_field field);
struct value attempt_f64(const struct attempt *a, enum task_field field);

struct value packed_own_ns(const struct packed *p, enum crema_time_id id);
struct value packed_pool_ns(const struct packed *p, enum crema_time_id id);
struct value packed_count_of(const struct packed *p, enum crema_count_id id);
struct value counters_own_ns(const struct counters *c, enum crema_time_id id);
struct value counters_pool_ns(const struct counters *c, enum crema_time_id id);
struct value counters_count_of(const struct counters *c, enum crema_count_id id);

#define OF_EITHER(c, function)                                                                     \
	_Generic((c), struct packed *: packed_##function, const struct packed *: packed_##function, \
		 default: counters_##function)
#define own_ns(c, id) OF_EITHER(c, own_ns)(c, id)
#define pool_ns(c, id) OF_EITHER(c, pool_ns)(c, id)
#define count_of(c, id) OF_EITHER(c, count_of)(c, id)

#endif
