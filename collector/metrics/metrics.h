/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics.h - the numbers of a run, as listed in contract/metrics.def.
 *
 * facts_build() adds up a run once; each formula in metrics_*.c is then a few lines over it. A sum
 * with an unknown part is unknown, but its known part is available.
 *
 * To add a metric: one line in metrics.def, one function metric_<id>() in the matching file. Every
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

/* The wall time of a task split into time classes. */
struct classes {
	struct value wall, cls[CREMA_TIMES]; /* seconds; storage_wait may be the remainder */
	double seconds[CREMA_TIMES];	     /* the same; 0: unknown */
	struct value unclassified;
	struct value events; /* of a chunk */
	uint32_t unknown;    /* bit CREMA_T_x: counted as 0 in unclassified */
	bool storage_estimated;
	bool remote;		      /* a chunk whose file is on a server */
	struct attempt_detail detail; /* of the classified attempt */
};

/* Sums over attempts of one kind. */
struct tally {
	size_t attempts;
	struct sum wall_ns, pool[CREMA_TIMES], own[CREMA_TIMES], count[CREMA_COUNTS];
	struct sum storage_read, storage_known, events, bytesread;
	/* of those whose file is on a server, and of the others */
	struct sum server_network, server_baskets, file_read;
	double processtime; /* seconds */
	size_t processtime_unknown;
	/* seconds by class, of `timed` attempts; wall includes unmeasured_s, of those attempts
	 * without measured classes that held a thread */
	size_t timed, unmeasured, class_unknown[CREMA_TIMES], unclassified_unknown;
	double wall, cls[CREMA_TIMES], unclassified, unclassified_long, unmeasured_s;
};

struct groups;

struct spread { /* of values over chunks or samples */
	size_t n, unknown;
	double sum, sum2, mean, min, max;
};

struct window { /* first begin and last end of attempts */
	uint64_t first_ns, last_ns;
	size_t n, unknown;
};

struct prefix { /* under one span */
	const char *span, *prefix;
};

struct facts {
	const struct run *run;
	struct run_state state;
	ARRAY(struct prefix) processors; /* of the user's tasks */
	struct tally chunks, tasks, all, chunks_all, wasted;
	struct tally preprocessing, merges, others; /* counted tasks that are not chunks */
	struct tally work; /* the user's own tasks: chunks, and what a lazy graph does with what
			      they read */
	bool lazy;	   /* dask-awkward: only the task that reads is a chunk */
	struct window preprocessing_window, work_window;
	struct groups *datasets, *workers; /* counted chunks, counted attempts (groups.h) */
	struct groups *datasets_all;	   /* all attempts at chunks, if those are shown; or NULL */
	size_t chunks_failed;		   /* attempts that erred, were killed or lost */
	struct spread chunk_time, chunk_wall, time_per_event, memory_per_event;
	struct spread chunk_events, chunk_memory; /* memory: growth in bytes */
	double wall_time;			  /* NAN: no clock */
	const char *wall_time_source;		  /* "workers" or "client" */
	struct tracking *tracking;
	struct hosts *hosts; /* metrics_hosts.h */
	bool dask;	     /* all workers with counted attempts have sent Dask's digests */
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
/* Sets the run's wall time as measured by the client. */
void facts_client_wall(struct facts *f, double seconds);
/* Whether the name is a file on a server; false for NULL. */
bool file_is_remote(const char *name);
void tally_add(struct tally *t, const struct attempt *a);
/* The same with attempt_classes() of it, for callers that add it to several. */
void tally_take(struct tally *t, const struct attempt *a, const struct classes *c);
struct value sum_value(const struct sum *s);
struct value sum_known(const struct sum *s);
void spread_add(struct spread *s, struct value v);
/* Unknown if it is empty or a part is unknown. */
struct value spread_mean(const struct spread *s);
struct value spread_std(const struct spread *s);
/* With n - 1; unknown for one value. */
struct value spread_sample_std(const struct spread *s);
struct value spread_min(const struct spread *s);
struct value spread_max(const struct spread *s);

/* CPU of own threads and pool threads, seconds. */
struct value tally_cpu(const struct tally *t);
/* Of attempts with measured classes only. */
struct value tally_cpu_part(const struct tally *t);
/*
 * Counted tasks, or all attempts if less than half of the time is of counted ones (a failed run).
 * Everything that describes where time went uses it, and prints which of the two it is.
 */
const struct tally *facts_shown(const struct facts *f);
bool facts_shows_all(const struct facts *f);
bool facts_shows(const struct facts *f, const struct attempt *a);
const struct groups *facts_datasets_shown(const struct facts *f);
/* The kind of a task, of counted and other attempts. */
enum task_class { TASK_WORK, TASK_PREPROCESSING, TASK_MERGE, TASK_OTHER };
enum task_class attempt_class(const struct facts *f, const struct attempt *a);
/* Bytes that arrived for chunks: from files by read calls if nothing was mapped, from files on
 * servers over the network; coffea's; the baskets'; the first less the last, and divided by it. */
struct value tally_came(const struct tally *t);
struct value tally_requested(const struct tally *t);
struct value tally_baskets(const struct tally *t);
struct value tally_outside(const struct tally *t);
struct value tally_amplification(const struct tally *t);
struct value tally_class(const struct tally *t, enum crema_time_id id);
/* Without unmeasured attempts, so a part of tally_wall(); unknown if there are no others. */
struct value tally_class_part(const struct tally *t, enum crema_time_id id);
/* Seconds; all unknown if one attempt's wall time is. tally_wall() is the sum of the class parts,
 * what is not classified and what is not measured; tally_unclassified() is both of these. */
struct value tally_wall(const struct tally *t);
struct value tally_unclassified(const struct tally *t);
struct value tally_unclassified_part(const struct tally *t);
struct value tally_unmeasured(const struct tally *t);
/* Whether an attempt had no value of this class. */
bool tally_lacks(const struct tally *t, enum crema_time_id id);

/* One attempt's numbers, as in the task rows and the tallies. */
struct value attempt_wall_ns(const struct attempt *a);
struct value attempt_storage_read(const struct attempt *a);
struct value attempt_storage_known(const struct attempt *a);
/* Waiting for a core, 0 if unknown: the same as in its classes, without computing the others. */
double attempt_queued_seconds(const struct attempt *a);
void attempt_classes(const struct attempt *a, struct classes *c);

/* Names of a time class: "gil", the short one, and "gil_wait_seconds", its metric. */
const char *class_name(unsigned int id);
const char *class_metric(unsigned int id);

/* All metrics of the table, with aliases, as members of the open object. */
void metrics_emit(const struct facts *f, struct json *j);
/*
 * For people: calls see() with every metric of the table, in its order. `text` is the value with
 * its unit ("1.2 MB/s", "unknown"). For a TREE, it is the JSON if short, else the number of
 * members, and `v` is null. Names from the run are unchanged: the caller cleans or escapes them.
 */
void metrics_each(const struct facts *f,
		  void (*see)(void *arg, const struct metric *m, struct value v, const char *text),
		  void *arg);
/* NULL: no such metric. */
const struct metric *metric_find(const char *id);
/* One value by its id; unknown for a TREE or an unknown id. */
struct value metric_value(const struct facts *f, const char *id);

/* Dask's digests of the run's spans. */
struct value digests_sum(const struct facts *f, const char *activity, const char *unit,
			 int processor);
/* What the run's workers did outside of tasks during the run (metrics_outside.c). */
struct value digests_outside(const struct facts *f, enum outside_series s);
/* Seconds of full garbage collections that were certainly within the run: at most gc_seconds. */
struct value digests_collected(const struct facts *f);
/* activity -> unit -> value of one worker; null if it sent none. */
void digests_emit_activities(const struct facts *f, const struct worker *w, const char *name,
			     struct json *j);
bool prefix_is_processor(const struct facts *f, const char *span, const char *prefix);
/* Adds the prefix of one of the user's tasks: 0 or -ENOMEM. */
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
	struct series last_seen; /* at each tracking_moment(): when the newest probe was taken */
	struct series occupancy, spilled;
	struct value cores, memory_limit; /* the newest */
	double peak_rss;		  /* including task starts and ends; NAN */
	double mean_task_wall;
	/* Of all the run's workers on its host: the most threads at one time, the cores; NAN. */
	double host_threads, host_cores;
};
struct tracking {
	struct series workers; /* their number, each second and at each change */
	struct worker_track *v;
	size_t n;
	double interval; /* NAN */
};
/* Whether a sample of that time applies to the run. */
bool tracking_has(const struct run *r, double time);
/* The i-th moment at which all workers are looked at: each second (in a run above two hours 7,200
 * times), and at its end; then NAN. */
double tracking_moment(const struct run *r, size_t i);
struct tracking *tracking_build(const struct run *run);
void tracking_free(struct tracking *t);
/* Time average by trapezoids; the value of a single point; NAN for none. */
double series_average(const struct series *s);
void tracking_emit(const struct facts *f, struct json *j);
void series_emit_point(struct json *j, double time, const char *name, struct value v);
/* Gets every point of tracking_data; worker NULL: of all workers. */
typedef void (*tracking_visitor)(void *arg, const struct worker *w, const char *series, double time,
				 struct value v);
void tracking_each(const struct facts *f, tracking_visitor see, void *arg);
/* "2026-11-21T10:15:30.123456+00:00" */
const char *iso_time(double utc, char *out, size_t size);

/* A unit: how it is printed, and how Prometheus names it (metrics_units.c). */
struct metric_unit {
	const char *unit; /* as in metrics.def */
	enum human as;
	const char *suffix; /* name of the base unit, "": none */
	double base;	    /* base units in one */
	const char *words;  /* parts of an id that name this unit, separated by blanks: the suffix
			       replaces them */
};
/* Never NULL for units in the table; NULL: no such unit. */
const struct metric_unit *metric_unit(const char *unit);

#define METRIC_PROMETHEUS_BYTES 96
/* "crema_run_read_rate_bytes_per_second"; "" if the metric is not a number. */
const char *metric_prometheus_name(const struct metric *m, char *out);
/* All NUM metrics of one run as gauges, HELP and TYPE first; unknown ones are omitted. */
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

/* A metric's formula that is the sum of a counter over the attempts of one tally. */
#define METRIC_COUNT(metric, tally, counter)                                                       \
	struct value metric_##metric(const struct facts *f)                                        \
	{                                                                                          \
		return sum_value(&f->tally.count[CREMA_C_##counter]);                              \
	}

#endif
