/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * task.h - one task record: task_fields.def and counters.def as a struct, to and from messages.
 *
 * On the wire a record is [message type, rev, values...]; the hello's list of names defines the
 * values once. A reader builds a task_map from that list, and then decodes with it: unknown names
 * are skipped, missing names stay unknown.
 *
 * Wire names: the fields' names; own times "<id>_ns"; pool times "pool_<id>_ns"; counts "<id>".
 * Text in a record is a view of the payload it was decoded from. No state; any thread.
 */
#ifndef CREMA_COMMON_TASK_H
#define CREMA_COMMON_TASK_H

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/pack.h"
#include "ids.h"

enum task_field {
#define FIELD(name, type, help) TASK_F_##name,
#include "task_fields.def"
#undef FIELD
	TASK_FIELDS
};

/* A "slot" is a position in our own order: fields, own times, pool times, counts. */
#define TASK_SLOTS (TASK_FIELDS + 2 * CREMA_TIMES + CREMA_COUNTS)
#define TASK_NAME_MAX 256 /* positions of a hello that are read */

#define TASK_TYPE_u64 uint64_t
#define TASK_TYPE_i64 int64_t
#define TASK_TYPE_f64 double
#define TASK_TYPE_str struct text

struct task_record {
	uint32_t type; /* CREMA_MSG_TASK_* */
	uint64_t rev;
#define FIELD(name, type, help) TASK_TYPE_##type name;
#include "task_fields.def"
#undef FIELD
	uint64_t own[CREMA_TIMES];  /* ns of the task's own thread */
	uint64_t pool[CREMA_TIMES]; /* ns of pool threads that worked for it */
	uint64_t count[CREMA_COUNTS];
	uint64_t known;	      /* bit TASK_F_x: field x is known */
	uint32_t own_known;   /* bit CREMA_T_x */
	uint32_t pool_known;  /* bit CREMA_T_x */
	uint64_t count_known; /* bit CREMA_C_x */
};

_Static_assert(TASK_FIELDS <= 64 && TASK_SLOTS <= TASK_NAME_MAX, "masks and maps are large enough");

#define TASK_KNOWN(r, field) (((r)->known >> TASK_F_##field) & 1u)
#define TASK_OWN_KNOWN(r, id) (((r)->own_known >> CREMA_T_##id) & 1u)
#define TASK_POOL_KNOWN(r, id) (((r)->pool_known >> CREMA_T_##id) & 1u)
#define TASK_COUNT_KNOWN(r, id) (((r)->count_known >> CREMA_C_##id) & 1u)
/* Sets a field and marks it as known. */
#define TASK_SET(r, field, value)                                                                  \
	((r)->field = (value), (r)->known |= UINT64_C(1) << TASK_F_##field)

struct task_map {
	uint32_t n;
	int16_t slot[TASK_NAME_MAX]; /* for each wire position; -1: skip */
};

static inline bool task_is_message(uint64_t type)
{
	return type >= CREMA_MSG_TASK_START && type <= CREMA_MSG_TASK_AMEND;
}

/* Wire name of slot i < TASK_SLOTS. Static. */
const char *task_name(unsigned i);
/* Writes the list of all names: the value of hello's "task_fields". */
void task_pack_names(msgpack_packer *pk);
/* Builds the map from that list. 0 or -EBADMSG (not an array); other things in it are skipped. */
int task_map_init(struct task_map *map, const msgpack_object *names);
/* The map for records in our own order. */
void task_map_own(struct task_map *map);

/* Writes [type, rev, values...]; unknown values as nil. */
void task_encode(msgpack_packer *pk, const struct task_record *r);
/*
 * Reads one message. 0, or -EBADMSG if it is not a task message (array of type 1-4, rev, ...). A
 * value of a wrong type is unknown. Fewer values than names: the rest is unknown.
 */
int task_decode(struct task_record *r, const struct task_map *map, const msgpack_object *message);
/*
 * The same from the bytes of a message at the start of [p, p+n): returns the bytes that it takes.
 * 0: it is not a task message, or not in an agent's form; then task_decode() must decide. Most of a
 * record is nil and small numbers: no tree of objects is made of them.
 */
size_t task_read(struct task_record *r, const struct task_map *map, const void *p, size_t n);

#endif
