/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics.h - the numbers of a run, by the table contract/metrics.def.
 *
 * facts_build() adds up a run once; each formula in metrics_*.c is then a few lines over it. A sum
 * with an unknown part is unknown, but its known part can be asked for.
 *
 * To add a metric: one line in metrics.def, one function metric_<id>() in the file that fits. Every
 * output shows it: JSON by metrics_emit(), terminal and page by metrics_each(), Prometheus by
 * metrics_prometheus(), docs/metrics.md by docs/gen_metrics.c.
 */
#ifndef CREMA_COLLECTOR_METRICS_METRICS_H
#define CREMA_COLLECTOR_METRICS_METRICS_H

#include "collector/emit/emit_json.h"
#include "collector/emit/emit_table.h"
#include "collector/runs/run_state.h"

struct sum {
	uint64_t v;
	size_t n, unknown;
};

/* Time classes of a task that its wall time is split into. */
struct classes {
	struct value wall, cls[CREMA_TIMES]; /* seconds; storage_wait may be the remainder */
	double seconds[CREMA_TIMES];	     /* the same; 0: unknown */
	struct value unclassified;
	struct value events; /* of a chunk */
	uint32_t unknown;    /* bit CREMA_T_x: counts as 0 in unclassified */
	bool storage_estimated;
	bool remote;		      /* a chunk's file is on a server */
	struct attempt_detail detail; /* of the attempt they are of */
};

/* Attempts of one kind, added up. */
struct tally {
	size_t attempts;
	struct sum wall_ns, pool[CREMA_TIMES], own[CREMA_TIMES], count[CREMA_COUNTS];
	struct sum storage_read, storage_known, events, bytesread;
	/* of those whose file is on a server, and of the others */
	struct sum server_network, server_baskets, file_read;
	double processtime; /* seconds */
	size_t processtime_unknown;
	/* seconds by class, of attempts that are not asynchronous */
	size_t timed, class_unknown[CREMA_TIMES], unclassified_unknown;
	double wall, cls[CREMA_TIMES], unclassified, unclassified_long;
};

struct groups;

struct spread { /* of values over chunks or samples */
	size_t n, unknown;
	double sum, sum2, mean, min, max;
};

struct window { /* first and last edge of attempts */
	uint64_t first_ns, last_ns;
	size_t n, unknown;
};

struct prefix { /* under one span */
	const char *span, *prefix;
};

struct facts {
	const struct run *run;
	struct run_state state;
	ARRAY(struct prefix) processors; /* of the user's work */
	struct tally chunks, tasks, all, chunks_all, wasted;
	struct tally preprocessing, merges, others; /* counted tasks that are not chunks */
	struct tally
		work; /* the user's own: chunks, and what a lazy graph does with what they read */
	bool lazy;    /* dask-awkward: a chunk is only the task that reads */
	struct window preprocessing_window, work_window;
	struct groups *datasets, *workers; /* counted chunks, counted attempts (groups.h) */
	struct groups *datasets_all; /* all attempts at chunks, where those are shown; or NULL */
	size_t chunks_failed;	     /* attempts that erred, were killed or lost */
	struct spread chunk_time, chunk_wall, time_per_event, memory_per_event;
	struct spread chunk_events, chunk_memory; /* memory: bytes it grew by */
	double wall_time;			  /* NAN: no clock */
	const char *wall_time_source;		  /* "workers" or "client" */
	struct tracking *tracking;
	struct hosts *hosts; /* metrics_hosts.h */
	bool dask; /* Dask's digests of all workers that have counted attempts are there */
};

enum metric_kind { METRIC_NUM, METRIC_TEXT, METRIC_TREE };

enum metric_group {
#define METRIC(id, alias, unit, kind, group, source, help)
#define GROUP(id, title) METRIC_GROUP_##id,
#include "metrics.def"
#undef GROUP
#undef METRIC
	METRIC_GROUPS
};

struct metric {
	const char *id, *alias, *unit, *source, *help;
	enum metric_kind kind;
	enum metric_group group;
	struct value (*num)(const struct facts *); /* NUM, TEXT */
	void (*tree)(const struct facts *, const char *name, struct json *);
};

extern const struct metric metric_table[];
extern const size_t metric_count;
extern const char *const metric_group_titles[METRIC_GROUPS];

int facts_build(struct facts *f, const struct run *run);
void facts_release(struct facts *f);
/* The client has measured the run's wall time itself. */
void facts_client_wall(struct facts *f, double seconds);
/* Whether that names a file on a server; NULL does not. */
bool file_is_remote(const char *name);
void tally_add(struct tally *t, const struct attempt *a);
/* The same, with attempt_classes() of it: for whoever adds it to several. */
void tally_take(struct tally *t, const struct attempt *a, const struct classes *c);
struct value sum_value(const struct sum *s);
struct value sum_known(const struct sum *s);
void spread_add(struct spread *s, struct value v);
/* Unknown if there is nothing or a part is unknown. */
struct value spread_mean(const struct spread *s);
struct value spread_std(const struct spread *s);
/* With n - 1; unknown of one. */
struct value spread_sample_std(const struct spread *s);
struct value spread_min(const struct spread *s);
struct value spread_max(const struct spread *s);

/* CPU of own threads and pool threads, seconds. */
struct value tally_cpu(const struct tally *t);
/*
 * Counted tasks; all attempts where less than half of the time is of counted ones (a failed run).
 * What describes where time went uses it, and prints which of the two it is.
 */
const struct tally *facts_shown(const struct facts *f);
bool facts_shows_all(const struct facts *f);
bool facts_shows(const struct facts *f, const struct attempt *a);
const struct groups *facts_datasets_shown(const struct facts *f);
/* A kind of task, of a counted attempt as of any other. */
enum task_class { TASK_WORK, TASK_PREPROCESSING, TASK_MERGE, TASK_OTHER };
enum task_class attempt_class(const struct facts *f, const struct attempt *a);
/* Bytes that came for chunks: of files by read calls where nothing was mapped, of files on servers
 * over the network; coffea's; the baskets'; the first less the last, and divided by it. */
struct value tally_came(const struct tally *t);
struct value tally_requested(const struct tally *t);
struct value tally_baskets(const struct tally *t);
struct value tally_outside(const struct tally *t);
struct value tally_amplification(const struct tally *t);
struct value tally_class(const struct tally *t, enum crema_time_id id);
/* Seconds; both unknown where one attempt's wall is. */
struct value tally_wall(const struct tally *t);
struct value tally_unclassified(const struct tally *t);

/* One attempt's numbers, as the task rows and the tallies have them. */
struct value attempt_wall_ns(const struct attempt *a);
struct value attempt_storage_read(const struct attempt *a);
struct value attempt_storage_known(const struct attempt *a);
/* Waiting for a core, 0 where it is unknown: as in its classes, without the work for the others. */
double attempt_queued_seconds(const struct attempt *a);
void attempt_classes(const struct attempt *a, struct classes *c);

/* Of a time class: "gil", its short name, and "gil_wait_seconds", its metric. */
const char *class_name(unsigned int id);
const char *class_metric(unsigned int id);

/* All metrics of the table as members of the object that is open; aliases too. */
void metrics_emit(const struct facts *f, struct json *j);
/*
 * For people: calls see() with every metric of the table, in its order. `text` is the value in its
 * unit ("1.2 MB/s", "unknown"); of a TREE the JSON if it is short, else how many members it has,
 * and `v` is null. Text of a run's names is as it came: whoever prints it cleans or escapes it.
 */
void metrics_each(const struct facts *f,
		  void (*see)(void *arg, const struct metric *m, struct value v, const char *text),
		  void *arg);
/* NULL: no such metric. */
const struct metric *metric_find(const char *id);
/* One value by its id, unknown for a TREE or a name that is not there. */
struct value metric_value(const struct facts *f, const char *id);

/* Dask's digests of the run's spans. */
struct value digests_sum(const struct facts *f, const char *activity, const char *unit,
			 int processor);
/* What the run's workers did outside of tasks meanwhile (metrics_outside.c). */
struct value digests_outside(const struct facts *f, enum outside_series s);
/* Seconds of full garbage collections that were certainly within the run: at most gc_seconds. */
struct value digests_collected(const struct facts *f);
/* activity -> unit -> value of one worker; null if it never said any. */
void digests_emit_activities(const struct facts *f, const struct worker *w, const char *name,
			     struct json *j);
bool prefix_is_processor(const struct facts *f, const char *span, const char *prefix);
/* Remembers the prefix of the user's work: 0 or -ENOMEM. */
int prefix_add(struct facts *f, const struct attempt *a);

/* Samples of the run (metrics_tracking.c). */
struct point {
	double time, value;
};
struct series {
	struct point *v;
	size_t n, cap;
};
struct worker_track {
	const struct worker *worker;
	struct series memory, cpu;				  /* SAMPLE messages */
	struct series limit, nthreads, executing, active, nbytes; /* probe */
	struct series last_seen; /* at each moment: when the newest probe was taken */
	struct series occupancy, spilled;
	struct value cores, memory_limit; /* the newest */
	double peak_rss;		  /* task edges included; NAN */
	double mean_task_wall;
};
struct tracking {
	struct series workers; /* how many, each second and at each change */
	struct worker_track *v;
	size_t n;
	double interval; /* NAN */
};
/* Whether what was seen at that time still says something of the run. */
bool tracking_has(const struct run *r, double time);
struct tracking *tracking_build(const struct run *run);
void tracking_free(struct tracking *t);
/* Time average by trapezoid; a single point is its value; NAN for none. */
double series_average(const struct series *s);
void tracking_emit(const struct facts *f, struct json *j);
void series_emit_point(struct json *j, double time, const char *name, struct value v);
/* Every point of tracking_data; worker NULL: of all of them. */
typedef void (*tracking_visitor)(void *arg, const struct worker *w, const char *series, double time,
				 struct value v);
void tracking_each(const struct facts *f, tracking_visitor see, void *arg);
/* "2026-11-21T10:15:30.123456+00:00" */
const char *iso_time(double utc, char *out, size_t size);

/* A unit: how it is printed, and what it is to Prometheus (metrics_units.c). */
struct metric_unit {
	const char *unit; /* as in metrics.def */
	enum human as;
	const char *suffix; /* of the base unit, "" = none */
	double base;	    /* base units in one */
	const char *
		words; /* of an id that say this unit, between blanks: the suffix stands for them */
};
/* Never NULL for what is in the table; NULL: no such unit. */
const struct metric_unit *metric_unit(const char *unit);

#define METRIC_PROMETHEUS_BYTES 96
/* "crema_run_read_rate_bytes_per_second"; "" for a metric that is not a number. */
const char *metric_prometheus_name(const struct metric *m, char *out);
/* All NUM metrics of one run as gauges, HELP and TYPE first; unknown ones have no sample. */
void metrics_prometheus(const struct facts *f, struct sink *s);

#define GROUP(id, title)
#define METRIC(id, alias, unit, kind, group, source, help) METRIC_DECLARE_##kind(id)
#define METRIC_DECLARE_NUM(id) struct value metric_##id(const struct facts *f);
#define METRIC_DECLARE_TEXT(id) METRIC_DECLARE_NUM(id)
#define METRIC_DECLARE_TREE(id)                                                                    \
	void metric_##id(const struct facts *f, const char *name, struct json *j);
#include "metrics.def"
#undef METRIC
#undef GROUP
#undef METRIC_DECLARE_NUM
#undef METRIC_DECLARE_TEXT
#undef METRIC_DECLARE_TREE

/* The formula of a metric that is the sum of a counter over the attempts of one tally. */
#define METRIC_COUNT(metric, tally, counter)                                                       \
	struct value metric_##metric(const struct facts *f)                                        \
	{                                                                                          \
		return sum_value(&f->tally.count[CREMA_C_##counter]);                              \
	}

#endif
