/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h - what the frames say, in memory: workers, attempts, samples, totals, files, codecs.
 *
 *	model_init(&m);  model_read_dir(&m, dir);  model_close(&m, now_ns);  ...  model_release(&m);
 *
 * Feeding is idempotent and does not depend on order: the highest revision of an attempt is true,
 * cumulative rows keep the largest value of each number, snapshots keep the latest by their boot
 * time, samples of the same time are dropped when the model is closed. A bad record is counted and
 * skipped, never fatal. model_close() maps clocks to UTC and settles the attempts without an end.
 *
 * Text is interned: equal names are equal pointers, NULL is unknown. Real numbers of samples use
 * NAN for unknown; counters have a bit mask. One thread.
 */
#ifndef CREMA_COLLECTOR_MODEL_MODEL_H
#define CREMA_COLLECTOR_MODEL_MODEL_H

#include <stdint.h>
#include <sys/types.h>

#include "collector/emit/emit.h"
#include "collector/model/attempt.h"
#include "collector/model/history.h"
#include "collector/model/model_lines.h"
#include "collector/model/model_stacks.h"
#include "collector/model/opened.h"
#include "collector/model/span_part.h"
#include "common/ranges.h"
#include "common/table.h"
#include "common/task.h"
#include "shm.h"
#include "wire.h"

/* A worker is silent when others were heard this much later (samples come each second). */
#define MODEL_SILENT_SECONDS 10.0
/* ... or when the whole journal is this much older than the report. */
#define MODEL_STALE_SECONDS 60.0
/* The collector's clock was set where two measurements differ by more than this and the drift. */
#define MODEL_CLOCK_SET_SECONDS 1.0
#define MODEL_CLOCK_DRIFT 5e-4

#define MODEL_DOING_ROWS 16 /* of a worker: what waits longest comes first */
#define MODEL_TAKEN_KEYS 32
#define MODEL_MOVED_BYTES 1000u /* between two totals, a second apart: less is not progress */

#define ARRAY(type)                                                                                \
	struct {                                                                                   \
		type *v;                                                                           \
		size_t n, cap;                                                                     \
	}

struct attempts {
	struct attempt **v;
	size_t n, cap;
};
struct texts {
	const char **v;
	size_t n, cap;
};

struct clock_pair {
	uint64_t boot_ns, real_ns;
	bool local; /* the worker's own realtime; only used when the collector's is unknown */
};
struct sample {
	uint64_t boot_ns;
	double time; /* UTC */
	union {
		struct {
#define SAMPLE_NUMBER(name, ...) double name;
#include "rows.def"
		};
		double number[CREMA_SAMPLE_NUMBERS];
	};
};
struct host_sample {
	uint64_t boot_ns;
	double time;
	union {
		struct {
#define HOST_NUMBER(name, ...) double name;
#include "rows.def"
		};
		double number[CREMA_HOST_NUMBERS];
	};
};
struct probe {
	uint64_t boot_ns;
	double time;
	double nthreads, executing, ready, in_flight_data, long_running, tasks, executed;
	double nbytes_managed, spilled_bytes, memory_bytes, memory_limit_bytes, cpu_percent;
	const char *status; /* Dask's words, of several Workers in turn; NULL: not said */
};
/* Tasks of a span that the scheduler took back from a worker before they ended. */
struct taken {
	const char *span;		     /* Dask's id */
	uint64_t tasks, boot_ns;	     /* boot_ns: the latest */
	double time;			     /* UTC, by model_close() */
	bool client_left;		     /* the scheduler lost the client */
	uint64_t key_hash[MODEL_TAKEN_KEYS]; /* of some of them */
	size_t keys;
};
/* What Dask's scheduler answered to the worker's probe last. */
struct scheduler_said {
	bool known;
	uint64_t boot_ns;
	double clients, unfinished; /* connected clients; tasks */
};
/* A thread of a running task is in a call that waits; texts are as they came. */
struct doing {
	uint64_t attempt, since_boot_ns; /* 0: not known */
	char call[48], kind[16], object[256], line[256];
};
struct digest {
	const char *context, *span, *prefix, *activity, *unit;
	double value;
	uint64_t boot_ns; /* of the latest sample that had its span */
};
/* What a worker did outside of tasks, since its start: Dask's digests that have no span, and two
 * numbers of the probe. */
enum outside_series {
	OUTSIDE_SERIALIZE,
	OUTSIDE_DESERIALIZE,
	OUTSIDE_COMPRESS,
	OUTSIDE_DECOMPRESS,
	OUTSIDE_DISK_READ_TIME,
	OUTSIDE_DISK_WRITE_TIME, /* seconds */
	OUTSIDE_DISK_READ,
	OUTSIDE_DISK_WRITE, /* bytes */
	OUTSIDE_DIGESTS,
	OUTSIDE_GC = OUTSIDE_DIGESTS, /* CPU seconds in full garbage collections */
	OUTSIDE_STREAM,		      /* bytes received on the scheduler's connection */
	OUTSIDE_SERIES
};
struct outside {
	uint64_t boot_ns;
	double v[OUTSIDE_SERIES]; /* NAN: unknown; of digests: some were cut off */
};
struct filesystem {
	const char *path, *type, *storage, *calibration;
};
struct stream {
	uint64_t id;
	struct task_map map;
	bool has_map;
	struct ranges ranges; /* records received */
};
struct amounts { /* a part of the process's own totals, as the lines TOTALS_AMOUNT of it */
	struct value cpu_ns, storage_read_bytes, storage_write_bytes;
};
struct totals {
	bool known;
	uint64_t boot_ns;
	union {
		struct {
#define TOTALS_NUMBER(name, ...) struct value name;
#include "rows.def"
		};
		struct value number[CREMA_TOTALS_NUMBERS];
	};
	struct value sections_outside, sections_refused, values_refused, columns_unmeasured;
	bool io_uring; /* it uses that: what it reads and writes is unknown */
	struct counters tasks, unattributed;
	union {
		struct {
			struct amounts process, seen, children;
		};
		struct value amount[CREMA_TOTALS_AMOUNTS];
	};
	struct blocked_totals blocked;
};
struct file_row {
	struct worker *worker;
	const char *path, *span, *filesystem, *storage, *kind;
	const char *name; /* as its reader calls it; NULL: not known */
	union {
		struct {
#define FILE_NUMBER(name, ...) struct value name;
#include "rows.def"
#define FILE_EXTENT(name, help) struct value name;
#include "rows.def"
		};
		struct value number[CREMA_FILE_VALUES];
	};
	struct ranges read, baskets; /* lists, as far as they came */
	struct opened_lines opened;
};
struct codec_row {
	struct worker *worker;
	const char *function, *codec, *direction, *span;
	union {
		struct {
#define CODEC_NUMBER(name, ...) struct value name;
#include "rows.def"
		};
		struct value number[CREMA_CODEC_NUMBERS];
	};
};

struct server_row {
	struct worker *worker;
	const char *server, *scheme, *span;
	union {
		struct {
#define SERVER_NUMBER(name, ...) struct value name;
#include "rows.def"
		};
		struct value number[CREMA_SERVER_NUMBERS];
	};
	uint64_t latency[CREMA_LATENCY_BUCKETS];
};

struct section_key {
	struct worker *worker;
	uint64_t number;
	const char *path, *span, *prefix, *kind, *thread, *source, *dataset; /* as on the wire */
	uint64_t beyond;						     /* 1: true there */
};
struct section_row {
	struct section_key key;
	uint64_t rev;
	union {
		struct {
#define SECTION_NUMBER(name, ...) struct value name;
#include "rows.def"
		};
		struct value number[CREMA_SECTION_NUMBERS];
	};
	uint32_t wall_bucket[CREMA_WALL_BUCKETS]; /* their sum lacks what was not told */
	struct counters c;			  /* inclusive */
};
struct gauge_row {
	struct section_key key;
	uint64_t rev;
	struct value broken;
	struct crema_stat stat[CREMA_GAUGE_STATS];
};

struct column_key {
	struct worker *worker;
	uint64_t number;
	const char *column, *tree, *dataset, *span; /* as on the wire */
	uint64_t together, beyond;		    /* 1: true there */
};
struct column_row {
	struct column_key key;
	const char *line[CREMA_COLUMN_LINES]; /* that asked for it: "FILE:LINE FUNCTION"; NULL: no
						 more */
	bool more_lines;
	uint64_t rev;
	union {
		struct {
#define COLUMN_NUMBER(name, ...) struct value name;
#include "rows.def"
		};
		struct value number[CREMA_COLUMN_NUMBERS];
	};
};

struct worker {
	uint8_t id[CREMA_WORKER_ID_BYTES];
	char hex[33];
	size_t place;	       /* among the model's workers */
	const char *label;     /* unique: Dask's address, else host:pid; by model_close() */
	uint64_t hello_stream; /* of the facts; the latest wins */
	const char *host, *boot_id, *agent_version, *cpu_model, *kernel, *python;
	const char *run_name; /* what its runs are called; NULL: nothing */
	const char *distributed, *dask, *coffea, *uproot, *address, *name;
	const char *scheduler; /* its address; NULL: not known */
	bool schedulers;       /* has served several */
	struct value pid, cores, memory_bytes, nthreads, memory_limit_bytes, net_namespace;
	ARRAY(struct filesystem) filesystems;
	ARRAY(struct clock_pair) clocks; /* by boot_ns, once closed */
	double clock_set_seconds; /* the collector's clock was set by so much meanwhile; 0: no */
	ARRAY(struct stream) streams;
	ARRAY(struct sample) samples;
	ARRAY(struct host_sample) hosts;
	ARRAY(struct probe) probes;
	ARRAY(struct outside) outside; /* those that differ from the one before */
	ARRAY(struct digest) digests;
	struct texts notes, evidence;
	uint64_t digests_boot_ns, digests_cut; /* cut: number missing in the latest sample */
	bool digests_whole;		       /* cut by spans: attempt_has_digests() */
	struct totals totals;		       /* the latest */
	struct history history;		       /* of the totals */
	bool goodbye;
	uint64_t goodbye_boot_ns;
	const char *goodbye_how, *goodbye_cause;
	struct value tasks_in_flight;
	uint64_t first_boot_ns, last_boot_ns; /* first and last message; last 0: none */
	double first, last;		      /* UTC */
	/* By model_process_lives(): of the process and of all its attempts, UTC; and the time in
	 * which it had at least one. */
	double process_start, first_edge, last_edge, work_seconds;
	struct value start_ticks;
	const char *cwd;     /* of a process without Dask */
	const char *closing; /* why Dask closes it, as the worker was told; NULL: not */
	ARRAY(struct taken) taken;
	struct scheduler_said told;
	ARRAY(struct doing) doing; /* the latest */
	uint64_t doing_boot_ns;
	uint64_t moved_boot_ns; /* when tasks were last seen to have read or written bytes; 0 */
	bool orphan;		/* ended by itself after the process that had started it */
	bool silent;		/* gone without a goodbye */
	bool left_out;		/* some of its attempts (selection.h) */
	uint16_t last_segment;	/* that has a frame of it */
	uint32_t outer_segment; /* see selection_history(): counted from 1 */
	size_t outer_point;
	uint64_t records_lost; /* gaps in its streams */
	struct lines_told lines;
	struct stream stacks;	/* numbers of the long waits received */
	struct stream spanned;	/* attempts whose span was said, by a selection (selection.h) */
	struct stream taken_up; /* those that it keeps */
};

struct segment { /* of the journal, by age */
	uint64_t created_ns, bytes;
};

struct torn_file {
	const char *name;
	uint64_t bytes_skipped;
	bool truncated, no_header, newer;
	int error; /* -errno: could not be read */
};

#define RUN_FITS 3
struct run_fits { /* runs that hold what was asked for, of the first name that found none */
	const char *which; /* as it was asked for; NULL: each name has found its run */
	size_t n;
	char ids[RUN_FITS][24];
};

/* Is called with each message that the model has taken. r NULL: it is not a task's, or is
 * malformed. `taken`: the record is kept. 0 or -errno. */
struct model_witness {
	int (*saw)(struct model_witness *self, struct worker *w, const struct stream *s,
		   const struct task_record *r, bool taken, const unsigned char *message,
		   size_t bytes);
};

struct model {
	struct run_fits fits;
	struct arena arena, bytes; /* bytes: keys and packed numbers */
	struct arena attempt_arena, page_arena;
	size_t packed_room; /* what the latest attempt's numbers took, and a little */
	struct names names;
	const char *recent[TASK_FIELDS]; /* the last text of each field of a task */
	const struct attempt_shared *recent_shared;
	struct attempt_page *recent_page; /* of the last attempt */
	struct table worker_table, attempt_table, shared_table, file_table, codec_table,
		server_table;
	struct table part_table; /* span_part.h */
	ARRAY(struct span_part *) parts;
	struct table module_table, site_table, section_table, gauge_table, column_table;
	ARRAY(struct worker *) workers;
	struct attempts attempts;
	ARRAY(struct file_row *) files;
	ARRAY(struct codec_row *) codecs;
	ARRAY(struct server_row *) servers;
	ARRAY(struct section_row *) sections;
	ARRAY(struct gauge_row *) gauges;
	ARRAY(struct column_row *) columns;
	ARRAY(struct site *) sites;
	struct waits sites_cut;
	struct lines_model lines;
	ARRAY(struct torn_file) torn;
	struct dropped_runs {
		struct dropped_run **v;
		size_t n, cap;
	} dropped,			/* in the order they were dropped (dropped.h) */
		totals;			/* by their ids (run_totals.h) */
	uint64_t below_ns;		/* segments created before are gone; of the latest folder */
	const char *dir;		/* that is read; the caller's text */
	bool several;			/* it is one of several */
	size_t dropped_attempts;	/* of dropped runs, left out */
	ARRAY(struct segment) segments; /* those that were read */
	uint16_t segment;		/* that is read now, counted; the last stands for more */
	uint64_t files_read, frames, records_bad;
	uint64_t history_points;       /* of all workers */
	unsigned int history_shift;    /* a cell has 2^this ns */
	uint64_t last_note_ns;	       /* CLOCK_REALTIME of the collector's last own entry */
	struct selection *selection;   /* of what is kept; NULL: everything (selection.h) */
	double newest;		       /* message, UTC, by model_close() */
	struct model_witness *witness; /* gets each message; NULL: nobody */
	uint64_t left_out;	       /* records of tasks that it did not take */
	int error;		       /* sticks: out of memory */
};

int model_init(struct model *m);
void model_release(struct model *m);

/* One frame with its inflated payload: 0 or -ENOMEM. Has the type of framefile_read's visitor. */
int model_feed(void *model, const struct crema_frame_header *head, const unsigned char *raw,
	       size_t raw_bytes);
/* As model_feed(), the records of known workers' tasks alone: for what is read a second time. */
int model_feed_tasks(void *model, const struct crema_frame_header *head, const unsigned char *raw,
		     size_t raw_bytes);
/* Takes all attempts away, and their memory. */
void model_drop_attempts(struct model *m);
/*
 * All frame files of DIR, DIR/journal and DIR/spool. The number of files read (0: none there),
 * -errno if DIR cannot be read. Torn files are named in m->torn. If the collector drops segments
 * meanwhile, it starts over, so the model must be fresh.
 */
int model_read_dir(struct model *m, const char *dir);
/* The same of `dir` and `more` (NULL at its end, or NULL) as one: the journals of several
 * collectors. A record that more than one of them has counts once. m->dir: the one read last. */
int model_read_dirs(struct model *m, const char *dir, const char *const *more);
/* Settles everything; now_ns is CLOCK_REALTIME, 0 = ignore the age of the journal. */
int model_close(struct model *m, uint64_t now_ns);
/* The part of it for attempts that were read after it. */
void model_close_attempts(struct model *m);

/* Once the attempts are closed and sorted by their begin. */
void model_process_lives(struct model *m);
/* From its start to its end, to its first attempt, and with at least one attempt; seconds. The
 * start is known to 10 ms. Unknown where attempts were left out. */
struct value worker_life(const struct worker *w);
struct value worker_startup(const struct worker *w);
struct value worker_work(const struct worker *w);

/* Whether both may be of one scheduler: not if their addresses differ, or are of other hosts' own.
 */
bool workers_share_scheduler(const struct worker *a, const struct worker *b);

struct worker *model_worker(struct model *m, const uint8_t *id);
struct worker *model_find_worker(const struct model *m, const uint8_t *id); /* NULL: none */
const char *model_text(struct model *m, struct text t);
/* The same, quicker where tasks that follow each other have the same one. */
const char *model_task_text(struct model *m, enum task_field field, struct text t);
/* UTC of a worker's boot time by the pair next to it, once model_close() has put them in order: ns
 * (0 without a clock), or seconds (NAN). */
uint64_t worker_utc_ns(const struct worker *w, uint64_t boot_ns);
double worker_utc(const struct worker *w, uint64_t boot_ns);

/* Parts of model_feed(), one per kind of message. */
int model_feed_hello(struct model *m, struct worker *w, uint64_t stream, const msgpack_object *map);
int model_feed_map(struct model *m, struct worker *w, uint64_t type, const msgpack_object *map);
int model_feed_server(struct model *m, struct worker *w, const msgpack_object *map);
int model_feed_doing(struct worker *w, const msgpack_object *map);
int model_feed_section(struct model *m, struct worker *w, const msgpack_object *map);
int model_feed_column(struct model *m, struct worker *w, const msgpack_object *map);
int model_feed_gauge(struct model *m, struct worker *w, const msgpack_object *map);
void model_take_counters(struct counters *c, const msgpack_object *map);
int model_feed_dask(struct model *m, struct worker *w, uint64_t boot_ns, struct text json);
void model_stack_facts(struct model *m, struct worker *w, struct text json);
struct stream *worker_stream(struct worker *w, uint64_t id);
void worker_sign(struct worker *w, uint64_t boot_ns);
int stream_received(struct stream *s, uint64_t from, uint64_t to);
bool stream_has(const struct stream *s, uint64_t number);
/* [from, to, ...], and of all of a worker's [[stream, [from, to, ...]], ...]. Taking them adds: 0,
 * -EBADMSG or -ENOMEM. */
void stream_pack(const struct stream *s, msgpack_packer *pk);
int stream_take(struct stream *s, const msgpack_object *list);
void worker_pack_streams(const struct worker *w, msgpack_packer *pk);
int worker_take_streams(struct worker *w, const msgpack_object *list);

#endif
