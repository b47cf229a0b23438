/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live.h - the cluster's current state and its totals so far, updated with each journaled frame.
 *
 * The server feeds it frames with checked payload (server_payload.h), in the order of the journal,
 * at the start those of the journal itself. Feeding a frame again changes nothing: a worker's
 * totals are cumulative and the latest by its clock count, an attempt's end counts once. Of task
 * records it reads only ends, and only their first few values.
 *
 * Memory: about 2.5 kB for each worker that is present or left recently, LIVE_WORKERS at most (160
 * MB); up to 112 bytes for each earlier one. Earlier ones are those with a goodbye beyond
 * LIVE_GONE_KEPT and lost ones beyond LIVE_LOST_KEPT. If such a lost one comes back, it is still
 * journaled, but the live numbers no longer include its work, and one line reports that. There are
 * LIVE_PREFIXES prefixes, and no data per task. The counts of a worker stay in the sums after it is
 * gone, so the sums never decrease during the life of the journal.
 *
 * live.json (live_json()); all values are null if unknown:
 *   version, time (UTC seconds), uptime_seconds
 *   workers   {connected, silent, lost, ended, killed, seen, threads}: connected = a message in the
 *             last 10 s; silent = none, and no goodbye; lost = silent for 10 min; ended and killed
 *             by their goodbye; seen = ever; threads = of the connected ones
 *   tasks     {running, started, done, refused, ok, erred, killed, other, chunks, events,
 *             executing, ready, long_running, fetching, known, remaining}: the first four are the
 *             workers' totals; ok..events come with the records of ended attempts; executing..
 *             fetching is what the connected Dask workers hold now; remaining = executing + ready
 *             + long_running; known = done + remaining in this activity. Workers do not know the
 *             tasks that wait in the scheduler, so these two are lower bounds: they grow while
 *             tasks are added.
 *   progress  {of, done, total, tasks_per_second, seconds_left, text} of the unfinished work, as
 *             Dask's scheduler counts it: of "chunks" or "tasks"; total null: unknown, and done is
 *             that of the activity; the whole null: idle
 *   state     {state, text, quiet_seconds, paused_workers, paused_memory_percent}: idle, running,
 *             or stalled: there are tasks, and for 30 s and 10 times the mean task none began or
 *             ended, on workers that hardly use their CPUs and whose tasks neither read nor write;
 *             or a client waits and the last worker was killed or lost; text: why, with the
 *             longest call, null: not stalled
 *   activity  {since, done, events, read_bytes}: since the cluster was last idle for 10 s; since
 *             null: it is idle
 *   rates     {tasks_per_second, events_per_second, bytes_per_second {layer: x}, threads_in
 *             {class: x}, cpu}: sums over the connected workers, each over its own last 4 to 8 s;
 *             threads_in: the mean number of task threads in this class; cpu: cores used by the
 *             worker processes
 *   totals    {layer: bytes} since the journal's beginning
 *   memory    {rss_bytes, limit_bytes, managed_bytes, spilled_bytes, largest_ratio, near_limit}
 *   completeness {records_lost, records_refused, tasks_refused, each null while a worker is silent
 *             or lost, with its known part as NAME_at_least; workers_with_notes}; what was refused
 *             is not lost (model/lost.h)
 *   journal_over why the journal is larger than --max-bytes, null: it is not
 *   journal_error why the journal cannot be written now, null: it can
 *   journals, journals_trouble: of `crema page`, see watch.h; else null
 *   prefixes  [{prefix, ok, erred, killed, other, wall_seconds}], most time first
 *   worker_rows, worker_rows_cut: [{id, worker, name, host, pid, state, threads, running, ready,
 *             executing, done, tasks_per_second, cpu_percent, rss_bytes, limit_bytes,
 *             bytes_per_second {}, threads_in {}, heard_seconds, paused, call}], connected and
 *             silent ones; how many were cut. Rates are rounded to a millionth. paused: by
 *             Dask; call: its longest call in doing {call, kind, object, line, seconds}, null:
 *             none
 *   doing, doing_cut: [{id, worker, name, host, pid, heard_seconds, key, prefix, span, function,
 *             dataset, filename, entrystart, entrystop, attempt, thread, pool, task_seconds, call,
 *             kind, object, call_seconds, place_seconds, seconds, line, stack [], state, wchan}]:
 *             threads of tasks that have run for a second or more, the longest in its call first,
 *             LIVE_DOING_ROWS at most; see DOING in docs/wire.md. Seconds are until the worker's
 *             last message; seconds: in its call or place, null: in no call
 * Layers: read, mapped, storage_read, storage_write, network_read, network_write, comm_read,
 * comm_write, decompress_in, decompress_out, write. Classes: the times of counters.def.
 *
 * One thread, the loop's.
 */
#ifndef CREMA_COLLECTOR_LIVE_LIVE_H
#define CREMA_COLLECTOR_LIVE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/emit/emit_json.h"
#include "collector/live/live_values.h"
#include "common/buf.h"
#include "common/pack.h"
#include "common/ranges.h"
#include "wire.h"

#define LIVE_PREFIXES 100	  /* counted separately; tasks of all others are under "other" */
#define LIVE_PREFIX_BYTES 64	  /* longer ones are cut */
#define LIVE_SILENT_MS 10000	  /* as in model.h: samples come each second */
#define LIVE_LOST_MS (10 * 60000) /* without a goodbye */
#define LIVE_GONE_KEPT 1024	  /* workers that left and are kept individually */
#define LIVE_LOST_KEPT 4096	  /* the same for lost workers */
#define LIVE_WORKERS 65536	  /* kept individually: more are not accepted */
#define LIVE_JSON_WORKERS 1000	  /* rows in live.json */
#define LIVE_DOING_ROWS 200	  /* rows of what tasks do in live.json */
#define LIVE_DOING_MEMORY (32u << 20) /* of all; the rest is not shown */
#define LIVE_NEAR_LIMIT 0.8	      /* of a worker's memory limit */

enum live_status { LIVE_OK, LIVE_ERRED, LIVE_KILLED, LIVE_OTHER, LIVE_STATUSES };
enum live_doing { LIVE_IDLE, LIVE_RUNNING, LIVE_STALLED, LIVE_DOINGS };
enum live_state { LIVE_CONNECTED, LIVE_SILENT, LIVE_LOST, LIVE_ENDED, LIVE_KILLED_WORKER };

struct live_prefix {
	char name[LIVE_PREFIX_BYTES + 1]; /* printable UTF-8 */
	uint64_t ended[LIVE_STATUSES];
	uint64_t wall_ns;
	bool has_chunks; /* it had coffea's chunks since the collector started */
};

/* The cluster as a whole. Gauges are over the connected workers; NAN: no worker reports it. */
struct live_cluster {
	uint64_t total[LIVE_VALUES];   /* sums over all workers ever seen; never decrease */
	uint64_t without[LIVE_VALUES]; /* workers that could not count this value, or not always */
	uint64_t workers_seen, workers_counted, gone_ended, gone_killed; /* counted: sent totals */
	uint64_t connected, silent, lost, with_notes, near_limit;
	uint64_t chunks, events, ended[LIVE_STATUSES], records_lost, records_bad;
	double threads, running, executing, ready, long_running, fetching;
	double rss_bytes, limit_bytes, managed_bytes, spilled_bytes, largest_ratio;
	double rate[LIVE_RATES];
	uint64_t paused;      /* by Dask */
	double paused_ratio;  /* of its memory limit: the fullest of them */
	double left_behind;   /* tasks that a client waits for without any worker left */
	double still_seconds; /* since tasks last read or wrote, limited as quiet_seconds */
	double quiet_seconds; /* since a task began or ended; at most since the collector started */
	bool unread;	      /* no journal was read: nothing is known */
	bool losses_unknown;  /* some journal was not, or only just */
};

/* How much of the unfinished work is done, according to Dask's scheduler. */
struct live_progress {
	bool known, chunks; /* known: whether the total is. chunks: of coffea; else all tasks */
	double done, total, per_second, seconds_left; /* the last two NAN: unknown */
};

struct live;

/* Positions in a task record, after type and revision; -1: absent. */
struct live_fields {
	uint64_t stream;
	bool set;
	int attempt, status, prefix, flags, wall, events, last;
	uint64_t wanted; /* bit i: one of them is at i < 64 */
};

struct live *live_new(void); /* NULL: out of memory */
void live_free(struct live *live);

/* A worker's hello: its facts and the field order of its task records. 0 or -ENOMEM. */
int live_hello(struct live *live, const uint8_t *worker, uint64_t stream,
	       const msgpack_object *map);
/*
 * The messages of a DATA frame: message i is from raw + starts[i] to the start of the next
 * one. Those before `from` were counted already; `lost` numbers before the frame never
 * arrived. 0 or -ENOMEM.
 */
struct live_frame {
	const struct crema_frame_header *head;
	const uint8_t *raw;
	const uint32_t *starts;
	uint64_t from, lost;
	const struct ranges *known;	  /* these were counted already, too; NULL: none */
	const struct live_fields *fields; /* of its stream; NULL: those of its latest hello */
};
int live_data(struct live *live, const struct live_frame *frame);
/*
 * Sums that belong to no single worker, as a msgpack map, and restoring them at the start, before
 * any frame (live_carry.c). Also of segments dropped by a crema version that wrote no checkpoint of
 * them, together with the numbers of each worker's ended attempts.
 */
void live_pack_sums(const struct live *live, msgpack_packer *pk);
void live_take_sums(struct live *live, const msgpack_object *map);
int live_take_ended(struct live *live, const uint8_t *worker, const msgpack_object *list);
/*
 * Writes everything as items of a checkpoint (checkpoint.h), and reads it into an empty live:
 * live_load() for each item, 0, -EBADMSG or -ENOMEM, then live_loaded(). Values have names there: a
 * checkpoint with other counters is handled like messages of an older or newer agent.
 */
struct items;
void live_save(const struct live *live, struct items *checkpoint);
int live_load(struct live *live, const msgpack_object_array *item);
void live_loaded(struct live *live);
void live_clear(struct live *live);
/* While old records are read, the workers' own clocks date their messages; what they did does not
 * belong to the current activity. */
void live_restoring(struct live *live, bool restoring);
/*
 * For records of several journals (collector/watch), in any order: a worker is connected by its
 * messages alone, and live_set_reach() passes on which journals were read. While some were not, no
 * worker that left is folded, because more of its records may come.
 */
struct live_reach {
	bool any, all; /* journals read to their ends */
	bool losses;   /* known */
	uint64_t records_lost;
};
void live_watch(struct live *live);
void live_set_reach(struct live *live, const struct live_reach *reach);
/* The field order in a hello, for live_frame. */
void live_hello_fields(struct live_fields *fields, const msgpack_object *map);
/* No room for this worker, which is still unknown. live NULL: there always is room. */
bool live_full(struct live *live, const uint8_t *worker);
/* An agent came (+1) or left (-1). */
void live_connection(struct live *live, const uint8_t *worker, int change);
/* How many records it refused; 0: unknown worker. */
uint64_t live_refused(const struct live *live, const uint8_t *worker);
/* Once a second: determines whether the cluster is idle, and folds workers that left long ago into
 * the sums. */
void live_tick(struct live *live);

/* Whether nothing ran in the last 10 s; how many attempts have ended so far. */
bool live_is_idle(const struct live *live, uint64_t *ended);

void live_cluster(struct live *live, struct live_cluster *out);
/* In order of their first task; the last one, "other", always exists. Returns their number. */
size_t live_prefixes(const struct live *live, const struct live_prefix **out);
/* Whether there are tasks, and whether they begin and end. */
enum live_doing live_doing(const struct live *live, const struct live_cluster *c);
/* The longest time that a task's thread on a connected worker has been in one call, in seconds;
 * NAN: unknown. */
double live_longest_call(const struct live *live);
void live_progress(struct live *live, struct live_progress *out);
/* "31 of 120 chunks, 1.7/s, about 52 s left"; if the total is unknown, with the number done in this
 * activity: "31 done, 1.7/s". */
void live_progress_text(const struct live_progress *p, const struct live_cluster *c, double done,
			char *line, size_t n);
const char *live_doing_name(enum live_doing doing);
/* For people, about a stalled cluster; cut to n. */
void live_stall_text(const struct live *live, const struct live_cluster *c, char *line, size_t n);
/* Of the journal, or the journals. */
struct live_journal {
	int error;	  /* -errno that prevents writing it, or 0 */
	const char *over; /* why it is larger than allowed, or "" */
	/* Writes "journals" and "journals_trouble"; NULL: they are null. */
	void (*each)(void *arg, struct json *j);
	void *arg;
};
/* Appends live.json. */
void live_json(struct live *live, uint64_t started_mono_ns, const struct live_journal *journal,
	       struct buf *out);

#endif
