/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live_parts.h - shared by the files of the live aggregates, and included only by them.
 *
 * From the bottom: live_names.c: prefixes, names, a worker's state; live_calls.c: the calls that
 * tasks are in; live.c: workers; live_totals.c, live_task.c, live_progress.c: single messages;
 * live_rows.c: the content of each message; live_cluster.c: sums, rates and gauges; live_stall.c:
 * whether tasks make progress; live_feed.c: incoming messages, connections and ticks; live_json.c:
 * live.json; live_checkpoint.c: saving and restoring.
 */
#ifndef CREMA_COLLECTOR_LIVE_LIVE_PARTS_H
#define CREMA_COLLECTOR_LIVE_LIVE_PARTS_H

#include "collector/live/live.h"
#include "common/ranges.h"
#include "common/table.h"

#define LIVE_STREAMS 4	       /* of a worker, whose field order is kept */
#define LIVE_ATTEMPT_GAPS 8192 /* more than a worker can have running */
#define LIVE_ANCHOR_NS UINT64_C(4000000000)
#define LIVE_IDLE_MS 10000
#define LIVE_PLACES 2048u /* values that a checkpoint may have */

/* Tasks of one kind in the scheduler's unfinished work; NAN: none began, none ended. */
struct live_count {
	double total, ended;
	double began, last; /* seconds ago: the first one began, the last one ended */
};

/* The scheduler's latest answer to the worker's probe. */
struct live_told {
	bool known;
	double age, clients; /* age: seconds, from the sample that contains it */
	char scheduler[64];  /* its id; "": unknown */
	struct live_count tasks, chunks;
};

/* Time in seconds of CLOCK_MONOTONIC, and how many tasks had ended; thread_s: live.thread_s
 * then. */
struct live_edge {
	double time, ended, thread_s;
};

/* The reference points of the rate of progress: it is measured from a; b is next. */
struct live_pace {
	bool chunks;
	double began;
	struct live_edge a, b;
};

struct live_row {
	uint64_t value[LIVE_VALUES];
	uint64_t known[(LIVE_VALUES + 63) / 64];
};

/* What rates are computed from, at one moment of the worker's clock. */
struct live_anchor {
	uint64_t boot_ns; /* 0: none yet */
	uint64_t value[LIVE_RATES];
	uint64_t known; /* bit LIVE_RATE_x */
};

struct live_worker {
	uint8_t id[CREMA_WORKER_ID_BYTES];
	struct live_worker *next;	       /* list of all */
	char address[128], name[64], host[64]; /* printable UTF-8 */
	uint64_t pid;
	struct live_fields fields[LIVE_STREAMS];
	unsigned int fields_next;
	uint64_t hello_stream;
	int connections;
	int64_t heard_ms;		       /* CLOCK_MONOTONIC */
	uint64_t hello_boot_ns, hello_real_ns; /* the worker's own clocks */
	bool goodbye, killed, has_totals, notes;
	uint64_t goodbye_order; /* the oldest are folded first */
	uint64_t last_boot_ns;	/* of the latest message */
	uint64_t totals_boot_ns, sample_boot_ns, probe_boot_ns;
	struct live_row row;
	struct live_anchor anchor[2], now;
	struct ranges ended; /* numbers of ended attempts */
	uint64_t events;
	uint64_t missing;			/* numbers of its streams that never arrived */
	double cpu_percent, rss_bytes, running; /* sample */
	double threads, limit_bytes;		/* hello or probe */
	double executing, ready, long_running, fetching, managed, spilled; /* probe */
	bool paused;							   /* the same */
	struct live_told told;						   /* the same */
	struct buf doing; /* the latest DOING message with rows, unchanged */
	uint64_t doing_boot_ns;
};

/* A worker that was ever seen; `worker` is NULL once it is folded into the sums. */
struct live_seen {
	uint8_t id[CREMA_WORKER_ID_BYTES];
	bool lost; /* folded without a goodbye, and silent since */
	struct live_worker *worker;
	uint64_t refused; /* records, until it was folded */
};

/* Maps the values of the checkpoint being read to ours; LIVE_VALUES: to none. */
struct live_places {
	uint32_t n;
	uint16_t at[LIVE_PLACES];
};

/* What counts as work. */
struct live_work {
	uint64_t done, events, read;
};

struct live {
	struct table seen;
	struct arena arena; /* of struct live_seen */
	uint64_t seed[2];   /* of the table: agents choose their ids */
	struct live_worker *workers;
	size_t worker_count, gone_count;
	uint64_t lost_gone;	    /* lost ones that were folded */
	bool returned;		    /* and one of them came back */
	struct live_prefix *prefix; /* LIVE_PREFIXES + 1, the last is "other" */
	size_t prefixes, prefix_hint;
	uint64_t sum[LIVE_VALUES]; /* of the workers' latest values */
	uint64_t total[LIVE_VALUES];
	uint64_t without[LIVE_VALUES];
	uint64_t counted, gone_ended, gone_killed, with_notes_gone;
	uint64_t chunks, events, ended[LIVE_STATUSES], records_bad;
	uint64_t records_lost; /* of folded workers; while watching of all */
	uint64_t gone_order;
	bool restoring;
	bool watching; /* messages come from journals, not connections */
	struct live_reach reach;
	struct live_work old; /* when restoring began */
	/* activity */
	int64_t busy_ms;  /* last time that something ran */
	double since;	  /* UTC; NAN: idle */
	int64_t edge_ms;  /* last time that a task had begun or ended, or that there was none */
	int64_t moved_ms; /* last time that tasks had read or written */
	uint64_t edges_before, moved_before;
	size_t doing_bytes; /* of all workers' `doing` */
	struct live_work since_work;
	struct live_pace pace;
	double thread_s; /* of workers with a first task, summed until thread_ms; only differences
			    count */
	int64_t thread_ms;
	struct live_work before; /* at the last tick */
	struct live_places places;
};

static inline bool live_known(const struct live_row *row, unsigned int i)
{
	return row->known[i / 64] >> (i % 64) & 1u;
}

/* Records of workers that left may still come. */
static inline bool live_keeps_all(const struct live *live)
{
	return live->watching && !live->reach.all;
}

int64_t live_now_ms(void);
/* The worker, created if there is none; NULL with *folded: gone forever; NULL: out of memory. */
struct live_worker *live_worker(struct live *live, const uint8_t *id, bool *folded);
/* Adds a folded one. 0 or -ENOMEM. */
int live_add_folded(struct live *live, const uint8_t *id, bool lost);
/* Printable UTF-8, cut at whole characters. */
void live_text(char *dst, size_t size, struct text text);
struct live_prefix *live_prefix_of(struct live *live, struct text name);
enum live_state live_state(const struct live_worker *w, int64_t now_ms);
/* Once a second: checks whether a task has begun or ended. */
void live_watch_edges(struct live *live, int64_t now_ms);
/* Records of the worker that are lost, see model/lost.h. */
uint64_t live_lost(const struct live_worker *w);
/* Frees the oldest gone workers beyond LIVE_GONE_KEPT. */
void live_fold(struct live *live);
/* Frees lost workers beyond LIVE_LOST_KEPT. */
void live_fold_lost(struct live *live);
uint64_t live_layer(const uint64_t *value, enum crema_layer_id layer);
bool live_layer_known(const struct live_row *row, enum crema_layer_id layer);
/* Whether no worker could count it. */
bool live_layer_unseen(const struct live_cluster *c, enum crema_layer_id layer);
/* Per second, over the worker's last seconds; NAN: unknown. */
double live_rate(const struct live_worker *w, enum live_rate rate);

/* live_rows.c: one message (an array of at least one value); fields: of its stream, NULL:
 * unknown */
int live_message(struct live *live, struct live_worker *w, const struct live_fields *fields,
		 const uint8_t *p, size_t n);
void live_rows_hello(struct live_worker *w, uint64_t stream, const msgpack_object *map);
/* For that stream's records; NULL: unknown. */
struct live_fields *live_fields_of(struct live_worker *w, uint64_t stream);
/* live_task.c: the end of an attempt. 0 or -ENOMEM */
int live_task_end(struct live *live, struct live_worker *w, const struct live_fields *fields,
		  const uint8_t *p, size_t n);
bool live_prefix_has_chunks(const struct live *live, struct text name);
/* live_progress.c: takes the probe's object "scheduler" */
struct json_t;
void live_progress_feed(struct live *live, struct live_worker *w, const struct json_t *told);
void live_progress_at(struct live *live, int64_t now_ms, struct live_progress *out);
/* live_calls.c: takes a DOING message, whose bytes are [p, p + n) */
int live_calls_take(struct live *live, struct live_worker *w, const msgpack_object *map,
		    const uint8_t *p, size_t n);
void live_calls_forget(struct live *live, struct live_worker *w);
/* Writes its call that lasts longest as the member "call"; null: none of a second or more. */
struct json;
void live_calls_longest(struct json *j, const struct live_worker *w);
/* "recv on peer 10.0.0.7:1094 for 23.00 s at a.py:3 f, task a": the longest one on connected
 * workers; "": none. */
void live_calls_text(const struct live *live, char *line, size_t n);
/* Tasks that a client was waiting for when the last worker was killed or lost; 0: none. */
double live_left_behind(const struct live *live);
/* The members "doing" and "doing_cut". */
void live_calls_rows(struct json *j, const struct live *live);
/* live_totals.c: a value's name in messages and the map that contains it, "": the message itself;
 * and the value with a name, -1: none (guess: start with 0, and reuse it for consecutive names) */
struct live_name {
	const char *part, *key;
};
struct live_name live_name(unsigned int value);
int live_index(struct text part, const msgpack_object *key, unsigned int *guess);
void live_totals(struct live *live, struct live_worker *w, const msgpack_object *map);

#endif
