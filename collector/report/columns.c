/* SPDX-License-Identifier: BSD-3-Clause */
/* columns.c - the columns of tasks and chunks, and the source of each value. */
#include "collector/report/columns.h"

#include <stdlib.h>

static struct value get_counted(const struct attempt *a, const struct classes *c)
{
	(void)c;
	return value_bool(a->counted);
}

static struct value get_waste_reason(const struct attempt *a, const struct classes *c)
{
	(void)c;
	return value_text(a->waste_reason);
}

static struct value get_worker(const struct attempt *a, const struct classes *c)
{
	(void)c;
	return value_text(a->worker->label);
}

static struct value get_worker_id(const struct attempt *a, const struct classes *c)
{
	(void)c;
	return value_text(a->worker->hex);
}

static struct value get_host(const struct attempt *a, const struct classes *c)
{
	(void)c;
	return value_text(a->worker->host);
}

static struct value get_pid(const struct attempt *a, const struct classes *c)
{
	(void)c;
	return a->worker->pid;
}

static struct value get_status(const struct attempt *a, const struct classes *c)
{
	(void)c;
	return value_text(attempt_state_name(a));
}

static struct value get_start(const struct attempt *a, const struct classes *c)
{
	(void)c;
	return value_real(attempt_begin(a));
}

static struct value get_stop(const struct attempt *a, const struct classes *c)
{
	(void)c;
	return a->state == ATTEMPT_RUNNING ? value_null() : value_real(attempt_end(a));
}

static struct value get_wall(const struct attempt *a, const struct classes *c)
{
	(void)a;
	return c->wall;
}

static struct value get_unclassified(const struct attempt *a, const struct classes *c)
{
	(void)a;
	return c->unclassified;
}

/* Never clamped: page faults of pool threads on mapped files are included. */
static struct value get_pool_unclassified(const struct attempt *a, const struct classes *c)
{
	const struct counters *n = &c->detail.c;
	struct value rest = value_seconds(count_of(n, CREMA_C_pool_wall_ns));
	int i;

	(void)a;
	for (i = 0; i < CREMA_TIMES; i++)
		rest = value_minus(rest, value_seconds(pool_ns(n, (enum crema_time_id)i)));
	return rest;
}

static struct value get_estimated(const struct attempt *a, const struct classes *c)
{
	(void)a;
	return value_bool(c->storage_estimated);
}

static struct value get_storage_read(const struct attempt *a, const struct classes *c)
{
	(void)c;
	return attempt_storage_read(a);
}

static struct value get_storage_known(const struct attempt *a, const struct classes *c)
{
	(void)c;
	return attempt_storage_known(a);
}

static struct value get_events(const struct attempt *a, const struct classes *c)
{
	(void)a;
	return c->events;
}

static struct value get_chunk_id(const struct attempt *a, const struct classes *c)
{
	(void)c;
	return value_uint(a->chunk_id);
}

static struct value get_sections_refused(const struct attempt *a, const struct classes *c)
{
	const char *text = c->detail.sections;

	(void)a;
	return text ? value_uint(strtoull(text, NULL, 10)) : value_null();
}

static struct value known_u64(const struct classes *c, enum task_field field, uint64_t v)
{
	return detail_knows(&c->detail, field) ? value_uint(v) : value_null();
}

static struct value rss_start(const struct classes *c)
{
	return known_u64(c, TASK_F_rss_start_bytes, c->detail.rss_start_bytes);
}

static struct value rss_stop(const struct classes *c)
{
	return known_u64(c, TASK_F_rss_stop_bytes, c->detail.rss_stop_bytes);
}

static struct value get_memory_start(const struct attempt *a, const struct classes *c)
{
	(void)a;
	return value_ratio(rss_start(c), value_real(1e9), 1);
}

static struct value get_memory_end(const struct attempt *a, const struct classes *c)
{
	(void)a;
	return value_ratio(rss_stop(c), value_real(1e9), 1);
}

static struct value get_memory_delta(const struct attempt *a, const struct classes *c)
{
	(void)a;
	return value_ratio(value_minus(rss_stop(c), rss_start(c)), value_real(1e9), 1);
}

static struct value get_memory_per_event(const struct attempt *a, const struct classes *c)
{
	(void)a;
	return value_ratio(value_minus(rss_stop(c), rss_start(c)), c->events, 1);
}

static struct value get_time_per_event(const struct attempt *a, const struct classes *c)
{
	bool known = detail_knows(&c->detail, TASK_F_coffea_processtime);

	(void)a;
	return value_ratio(known ? value_real(c->detail.coffea_processtime) : value_null(),
			   c->events, 1);
}

/* clang-format off */
#define TEXT(name, member)                                                                         \
	{name, FROM_TEXT, 0, offsetof(struct attempt_detail, member), NULL, VALUE_TEXT}
#define U64(name, member)                                                                          \
	{name, FROM_U64, TASK_F_##member, offsetof(struct attempt_detail, member), NULL, VALUE_UINT}
#define I64(name, member)                                                                          \
	{name, FROM_I64, TASK_F_##member, offsetof(struct attempt_detail, member), NULL, VALUE_INT}
#define REAL(name, member)                                                                         \
	{name, FROM_REAL, TASK_F_##member, offsetof(struct attempt_detail, member), NULL, VALUE_REAL}
#define CLASS(name, cls) {name, FROM_CLASS, CREMA_T_##cls, 0, NULL, VALUE_REAL}
#define POOL(name, cls) {name, FROM_POOL, CREMA_T_##cls, 0, NULL, VALUE_REAL}
#define COUNTED(name) {#name, FROM_COUNT, CREMA_C_##name, 0, NULL, VALUE_UINT}
#define SECONDS(name, counter) {name, FROM_COUNT_S, CREMA_C_##counter, 0, NULL, VALUE_REAL}
#define FLAG(name, bit) {name, FROM_FLAG, bit, 0, NULL, VALUE_BOOL}
#define CALL(name, type, function) {name, FROM_CALL, 0, 0, function, VALUE_##type}
/* clang-format on */

const struct column task_columns[] = {
	TEXT("key", key),
	U64("attempt", attempt),
	CALL("counted", BOOL, get_counted),
	CALL("waste_reason", TEXT, get_waste_reason),
	TEXT("prefix", prefix),
	TEXT("span", span),
	TEXT("function", function),
	TEXT("worker_address", worker_address),
	CALL("worker", TEXT, get_worker),
	CALL("worker_id", TEXT, get_worker_id),
	CALL("host", TEXT, get_host),
	CALL("pid", UINT, get_pid),
	U64("thread", thread),
	U64("thread_sequence", thread_sequence),
	FLAG("async", CREMA_TASK_ASYNC),
	FLAG("elsewhere", CREMA_TASK_ELSEWHERE),
	FLAG("thread_refused", CREMA_TASK_THREAD_REFUSED),
	FLAG("actor", CREMA_TASK_ACTOR),
	FLAG("merge", CREMA_TASK_MERGE),
	FLAG("preprocessing", CREMA_TASK_PREPROCESSING),
	FLAG("key_cut", CREMA_TASK_KEY_CUT),
	CALL("status", TEXT, get_status),
	TEXT("error_type", error_type),
	TEXT("error_text", error_text),
	TEXT("error_cause", error_cause),
	CALL("start", REAL, get_start),
	CALL("stop", REAL, get_stop),
	CALL("wall_seconds", REAL, get_wall),
#define PLAIN(id, name) CLASS(#name, id),
#define CPU(id, name) CLASS(#name, id), POOL("pool_" #name, id),
#define ESTIMATED(id, name) CLASS(#name, id), CALL("storage_wait_estimated", BOOL, get_estimated),
#define TIME(id, name, column, ...) column(id, name)
#include "counters.def"
#undef PLAIN
#undef CPU
#undef ESTIMATED
	CALL("unclassified_seconds", REAL, get_unclassified),
	SECONDS("pool_wall_seconds", pool_wall_ns),
#define PLAIN(id, name) POOL("pool_" #name, id),
#define CPU(id, name)
#define ESTIMATED(id, name) PLAIN(id, name)
#define TIME(id, name, column, ...) column(id, name)
#include "counters.def"
	CALL("pool_unclassified_seconds", REAL, get_pool_unclassified),
#define AS_calls(name, id) COUNTED(id),
#define AS_bytes AS_calls
#define AS_ns(name, id) SECONDS(#name, id),
#define COLUMN(id, unit, name) AS_##unit(name, id)
#define STORAGE(id, unit, name)                                                                    \
	CALL("storage_read_bytes", UINT, get_storage_read),                                        \
		CALL("storage_known_bytes", UINT, get_storage_known),                              \
		TEXT("storage_unknown_filesystem", fs_unknown),
#define ELSEWHERE(id, unit, name)
#define COUNT(id, unit, name, column, help) column(id, unit, name)
#include "counters.def"
	U64("rss_start_bytes", rss_start_bytes),
	U64("rss_stop_bytes", rss_stop_bytes),
	U64("rss_peak_bytes", rss_peak_bytes),
};

/* Additional columns of a chunk; the names of the reference documents come after ours. */
const struct column chunk_columns[] = {
	CALL("chunk_id", UINT, get_chunk_id),
	TEXT("dataset", dataset),
	TEXT("filename", filename),
	TEXT("treename", treename),
	U64("tree_reads", tree_reads),
	I64("entrystart", entrystart),
	I64("entrystop", entrystop),
	CALL("events", UINT, get_events),
	U64("coffea_bytesread", coffea_bytesread),
	REAL("coffea_processtime_seconds", coffea_processtime),
	REAL("processing_time_seconds", coffea_processtime),
	CALL("memory_start_gb", REAL, get_memory_start),
	CALL("memory_end_gb", REAL, get_memory_end),
	CALL("memory_delta_gb", REAL, get_memory_delta),
	CALL("time_per_event_seconds", REAL, get_time_per_event),
	CALL("memory_per_event_bytes", REAL, get_memory_per_event),
	CALL("sections_refused", UINT, get_sections_refused),
};

const size_t task_column_count = sizeof(task_columns) / sizeof(*task_columns);
const size_t chunk_column_count = sizeof(chunk_columns) / sizeof(*chunk_columns);

struct value column_value(const struct column *col, const struct attempt *a,
			  const struct classes *c)
{
	const struct attempt_detail *d = &c->detail;
	const char *at = (const char *)d + col->offset;
	bool known = col->source <= FROM_REAL && ((d->known >> col->id) & 1);

	switch (col->source) {
	case FROM_TEXT:
		return value_text(*(const char *const *)(const void *)at);
	case FROM_U64:
		return known ? value_uint(*(const uint64_t *)(const void *)at) : value_null();
	case FROM_I64:
		return known ? value_int(*(const int64_t *)(const void *)at) : value_null();
	case FROM_REAL:
		return known ? value_real(*(const double *)(const void *)at) : value_null();
	case FROM_CLASS:
		return c->cls[col->id];
	case FROM_POOL:
		return value_seconds(pool_ns(&d->c, (enum crema_time_id)col->id));
	case FROM_COUNT:
		return count_of(&d->c, (enum crema_count_id)col->id);
	case FROM_COUNT_S:
		return value_seconds(count_of(&d->c, (enum crema_count_id)col->id));
	case FROM_FLAG:
		return value_bool((a->flags & col->id) != 0);
	default:
		return col->call(a, c);
	}
}
