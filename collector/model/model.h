/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h - the contents of the frames in memory: workers, attempts, samples, totals, files,
 * codecs.
 *
 *	model_init(&m);  model_read_dir(&m, dir);  model_close(&m, now_ns);  ...  model_release(&m);
 *
 * Feeding is idempotent and does not depend on order: the highest revision of an attempt wins,
 * cumulative rows keep the largest value of each number that their newest record knows, snapshots
 * keep the latest by their boot time, and duplicate samples are dropped when the model is closed. A
 * bad record is counted and skipped; it is never fatal. model_close() maps clocks to UTC and
 * settles the attempts without an end.
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
#include "common/fskind.h"
#include "common/ranges.h"
#include "common/table.h"
#include "common/task.h"
#include "shm.h"
#include "wire.h"

/* A worker is silent if others sent messages this much later (samples come each second), */
#define MODEL_SILENT_SECONDS 10.0
/* ... or if the whole journal is this much older than the report. */
#define MODEL_STALE_SECONDS 60.0
/* The collector's clock was set if two measurements differ by more than this and the drift. */
#define MODEL_CLOCK_SET_SECONDS 1.0
#define MODEL_CLOCK_DRIFT 5e-4

#define MODEL_DOING_ROWS 16 /* per worker, longest wait first */
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
	bool local; /* the worker's own realtime clock; only used if the collector's is unknown */
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
	const char *status; /* Dask's status, of several Workers in turn; NULL: not reported */
};
/* Tasks of a span that the scheduler took from a worker before they ended. */
struct taken {
	const char *span;		     /* Dask's id */
	uint64_t tasks, boot_ns;	     /* boot_ns: the latest */
	double time;			     /* UTC, by model_close() */
	bool client_left;		     /* the scheduler lost the client */
	uint64_t key_hash[MODEL_TAKEN_KEYS]; /* of some of them */
	size_t keys;
};
/* The last answer of Dask's scheduler to the worker's probe. */
struct scheduler_said {
	bool known;
	uint64_t boot_ns;
	double clients, unfinished; /* connected clients; tasks */
};
/* A thread of a running task that waits in a call. Texts are stored unchanged. */
struct doing {
	uint64_t attempt, since_boot_ns; /* 0: unknown */
	char call[48], kind[16], object[256], line[256];
};
struct digest {
	const char *context, *span, *prefix, *activity, *unit;
	double value;
	uint64_t boot_ns; /* of the latest sample that contained its span */
};
/* What a worker did outside of tasks since its start: Dask's digests without a span, and two
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
	double v[OUTSIDE_SERIES]; /* NAN: unknown; of digests: truncated */
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
struct amounts { /* a part of the process totals, as in the TOTALS_AMOUNT rows */
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
	bool io_uring; /* uses io_uring, so its reads and writes are unknown */
	struct counters tasks, unattributed;
	union {
		struct {
			struct amounts process, seen, children;
		};
		struct value amount[CREMA_TOTALS_AMOUNTS];
	};
	struct blocked_totals blocked;
};
/* Which record of a row is newest. rev: of rows that have one; records of equal revisions may
 * differ in what is known. A later agent of the worker has a larger stream. */
struct row_version {
	uint64_t rev, stream, record;
};
struct file_row {
	struct worker *worker;
	struct row_version version;
	const char *path, *span, *filesystem, *storage, *kind;
	const char *name; /* as its reader names it; NULL: unknown */
	enum fsplace place;
	union {
		struct {
#define FILE_NUMBER(name, ...) struct value name;
#include "rows.def"
#define FILE_EXTENT(name, help) struct value name;
#include "rows.def"
		};
		struct value number[CREMA_FILE_VALUES];
	};
	struct ranges read, baskets; /* the ranges received so far */
	struct opened_lines opened;
};
struct codec_row {
	struct worker *worker;
	struct row_version version;
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
	struct row_version version;
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
	struct row_version version;
	union {
		struct {
#define SECTION_NUMBER(name, ...) struct value name;
#include "rows.def"
		};
		struct value number[CREMA_SECTION_NUMBERS];
	};
	uint32_t wall_bucket[CREMA_WALL_BUCKETS]; /* sum: lacks unreported times */
	struct counters c;			  /* inclusive */
};
struct gauge_row {
	struct section_key key;
	struct row_version version;
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
	const char *line[CREMA_COLUMN_LINES]; /* that requested it: "FILE:LINE FUNCTION"; NULL: end
						 of list */
	bool more_lines;
	struct row_version version;
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
	size_t place;	       /* index in the model's workers */
	const char *label;     /* unique: Dask's address, else host:pid; set by model_close() */
	uint64_t hello_stream; /* of the facts; the latest wins */
	const char *host, *boot_id, *agent_version, *cpu_model, *kernel, *python;
	const char *run_name; /* name for its runs; NULL: none */
	const char *distributed, *dask, *coffea, *uproot, *address, *name;
	const char *scheduler; /* its address; NULL: unknown */
	bool schedulers;       /* it has served several */
	struct value pid, cores, memory_bytes, nthreads, memory_limit_bytes, net_namespace;
	ARRAY(struct filesystem) filesystems;
	ARRAY(struct clock_pair) clocks; /* by boot_ns, once closed */
	double clock_set_seconds; /* the collector's clock was set by this much meanwhile; 0: no */
	ARRAY(struct stream) streams;
	ARRAY(struct sample) samples;
	ARRAY(struct host_sample) hosts;
	ARRAY(struct probe) probes;
	ARRAY(struct outside) outside; /* those that differ from their predecessor */
	ARRAY(struct digest) digests;
	struct texts notes, evidence;
	uint64_t digests_boot_ns, digests_cut; /* cut: how many the latest sample lacks */
	bool digests_whole;		       /* truncated per span: attempt_has_digests() */
	struct totals totals;		       /* the latest */
	struct history history;		       /* of the totals */
	bool goodbye;
	uint64_t goodbye_boot_ns;
	const char *goodbye_how, *goodbye_cause;
	struct value tasks_in_flight;
	uint64_t first_boot_ns, last_boot_ns; /* first and last message; last 0: none */
	double first, last;		      /* UTC */
	/* Set by model_process_lives(): times of the process and of all its attempts, UTC, and the
	 * time in which it had at least one attempt. */
	double process_start, first_edge, last_edge, work_seconds;
	struct value start_ticks;
	const char *cwd;     /* of a process without Dask */
	const char *closing; /* why Dask closes it, as sent to the worker; NULL: it does not */
	ARRAY(struct taken) taken;
	struct scheduler_said told;
	ARRAY(struct doing) doing; /* the latest */
	uint64_t doing_boot_ns;
	uint64_t moved_boot_ns; /* last time that tasks had moved bytes; 0: never */
	bool orphan;		/* exited after the process that had started it */
	bool silent;		/* gone without a goodbye */
	bool left_out;		/* some of its attempts were (selection.h) */
	uint16_t last_segment;	/* with a frame of it */
	uint32_t outer_segment; /* see selection_history(): counted from 1 */
	size_t outer_point;
	uint64_t records_lost; /* see lost.h */
	struct lines_told lines;
	struct stream stacks;	/* numbers of the long waits received */
	struct stream spanned;	/* attempts whose span a selection has seen (selection.h) */
	struct stream taken_up; /* those that it keeps */
};

struct segment { /* of the journal, by age */
	uint64_t created_ns, bytes;
};

struct torn_file {
	const char *name;
	bool journal; /* it is one of several directories */
	uint64_t bytes_skipped;
	bool truncated, no_header, newer;
	int error; /* -errno: unreadable */
};

#define RUN_FITS 3
struct run_fits {	   /* runs that match the first name that found no run */
	const char *which; /* the requested name; NULL: each name has found its run */
	size_t n;
	char ids[RUN_FITS][24];
};

/* Called with each message that the model has taken. r NULL: not of a task, or malformed. `taken`:
 * the record is kept. 0 or -errno. */
struct model_witness {
	int (*saw)(struct model_witness *self, struct worker *w, const struct stream *s,
		   const struct task_record *r, bool taken, const unsigned char *message,
		   size_t bytes);
};

struct model {
	struct run_fits fits;
	struct arena arena, bytes; /* bytes: keys and packed numbers */
	struct arena attempt_arena, page_arena;
	size_t packed_room; /* size of the latest attempt's numbers, and some slack */
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
	} dropped,		 /* in the order they were dropped (dropped.h) */
		totals;		 /* by their ids (run_totals.h) */
	uint64_t below_ns;	 /* segments created before this are gone; of the latest folder */
	const char *dir;	 /* being read; the caller's text */
	bool several;		 /* it is one of several */
	bool pass_over;		 /* set it before reading: see model_read_dirs() */
	size_t missing;		 /* directories that were passed over */
	size_t dropped_attempts; /* skipped, of dropped runs */
	ARRAY(struct segment) segments; /* those that were read */
	uint16_t segment; /* being read, as an index; UINT16_MAX stands for all above it */
	uint64_t files_read, frames, records_bad;
	struct row_version fed;	     /* the record that is being fed */
	uint64_t history_points;     /* of all workers */
	unsigned int history_shift;  /* a cell has 2^history_shift ns */
	uint64_t last_note_ns;	     /* CLOCK_REALTIME of the collector's last entry about itself */
	struct selection *selection; /* filter; NULL: keep everything (selection.h) */
	double newest;		     /* message, UTC, set by model_close() */
	struct model_witness *witness; /* gets each message; may be NULL */
	uint64_t left_out;	       /* records of tasks that it rejected */
	int error;		       /* sticky: out of memory */
};

int model_init(struct model *m);
void model_release(struct model *m);

/* Feeds one frame with its inflated payload: 0 or -ENOMEM. Has the type of framefile_read's
 * visitor. */
int model_feed(void *model, const struct crema_frame_header *head, const unsigned char *raw,
	       size_t raw_bytes);
/* As model_feed(), but only task records of known workers: for a second reading. */
int model_feed_tasks(void *model, const struct crema_frame_header *head, const unsigned char *raw,
		     size_t raw_bytes);
/* Removes all attempts and frees their memory. */
void model_drop_attempts(struct model *m);
/*
 * Reads all frame files of DIR, DIR/journal and DIR/spool. Returns the number of files read (0:
 * none there), -errno if DIR cannot be read. Torn files are listed in m->torn. If the collector
 * drops segments meanwhile, the reading starts over, so the model must be fresh.
 */
int model_read_dir(struct model *m, const char *dir);
/* The same for `dir` and `more` (NULL-terminated, or NULL) as one: the journals of several
 * collectors. A record that several of them have counts once. m->dir: the one read last. With
 * m->pass_over those that have no journal, or cannot be read, are in m->torn, and the others are
 * read; it fails if none can be. */
int model_read_dirs(struct model *m, const char *dir, const char *const *more);
/* Settles everything; now_ns is CLOCK_REALTIME, 0: ignore the age of the journal. */
int model_close(struct model *m, uint64_t now_ns);
/* The part of it for attempts that were read later. */
void model_close_attempts(struct model *m);

/* After the attempts are closed and sorted by their begin. */
void model_process_lives(struct model *m);
/* Seconds from its start to its end, to its first attempt, and with at least one attempt. The start
 * is known to 10 ms. Unknown if attempts were left out. */
struct value worker_life(const struct worker *w);
struct value worker_startup(const struct worker *w);
struct value worker_work(const struct worker *w);

/* Whether both are known to use the same network of the same boot of a machine. */
bool workers_share_network(const struct worker *a, const struct worker *b);
/* Whether both may belong to one scheduler: not if their addresses differ, or are local
 * addresses of different networks. */
bool workers_share_scheduler(const struct worker *a, const struct worker *b);

struct worker *model_worker(struct model *m, const uint8_t *id);
struct worker *model_find_worker(const struct model *m, const uint8_t *id); /* NULL: none */
const char *model_text(struct model *m, struct text t);
/* The same, faster if consecutive tasks have the same text. */
const char *model_task_text(struct model *m, enum task_field field, struct text t);
/* UTC of a worker's boot time, from the nearest pair, once model_close() has sorted them: ns (0
 * without a clock), or seconds (NAN). */
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
/* [from, to, ...], and for all of a worker's streams [[stream, [from, to, ...]], ...]. Taking adds
 * them: 0, -EBADMSG or -ENOMEM. */
void stream_pack(const struct stream *s, msgpack_packer *pk);
int stream_take(struct stream *s, const msgpack_object *list);
void worker_pack_streams(const struct worker *w, msgpack_packer *pk);
int worker_take_streams(struct worker *w, const msgpack_object *list);

#endif
