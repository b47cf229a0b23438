/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sections.h - what user code records with crema.section, crema.metric and crema.memory: sums over
 * all workers of a run.
 *
 * A section's numbers cover all its executions and include inner sections; its self numbers exclude
 * them. The list by dataset has the same sums for each dataset. It has no self numbers: a worker's
 * table may have had room for a section's dataset but not for that of an inner section. "Outermost"
 * sections of the tasks' own threads do not overlap; the rest of their tasks' numbers was counted
 * outside of sections. Sections of pool threads are within those.
 */
#ifndef CREMA_COLLECTOR_REPORT_SECTIONS_H
#define CREMA_COLLECTOR_REPORT_SECTIONS_H

#include "collector/emit/emit_json.h"
#include "collector/emit/emit_table.h"
#include "collector/runs/runs.h"
#include "common/rows.h"

/* wall, own times, the pool's CPU, counts */
#define SECTION_NUMBERS (1 + CREMA_TIMES + 1 + CREMA_COUNTS)

struct section_sum {
	const char *path; /* "outer/inner"; NULL: those beyond the workers' tables */
	const char *prefix, *thread, *source;
	const char *dataset;	   /* NULL: unknown, or beyond, or any */
	bool beyond;		   /* of the datasets beyond the workers' tables */
	struct section_sum *outer; /* of the same prefix, thread and source; NULL: outermost */
	union {
		struct {
#define SECTION_NUMBER(name, ...) struct value name;
#include "rows.def"
		};
		struct value row[CREMA_SECTION_NUMBERS];
	};
	uint64_t wall_bucket[CREMA_WALL_BUCKETS];
	struct value number[SECTION_NUMBERS], inner[SECTION_NUMBERS]; /* by section_number_name */
	bool has_inner;
};

struct gauge_sum {
	const char *path, *prefix, *kind, *source;
	struct value broken;
	struct crema_stat stat[CREMA_GAUGE_STATS]; /* last: NAN if several workers reported it */
};

struct section_list {
	ARRAY(struct section_sum *) v; /* most wall first */
	struct table table;
};

struct sections {
	struct section_list all, by_dataset;
	ARRAY(struct gauge_sum *) gauges;
	struct value outside, refused, values; /* over the whole life of the run's workers */
	struct value beyond;		       /* executions whose dataset had no room */
	struct arena arena;
	struct table gauge_table;
};

int sections_gather(struct sections *s, const struct run *run);
void sections_release(struct sections *s);

/* Names of the numbers, at most SECTION_NUMBERS; NULL after the last. All in seconds or bytes. */
const char *section_number_name(size_t i);
/* Inclusive, or without inner sections. */
struct value section_number(const struct section_sum *s, size_t i, bool self);
/* Wall time that is neither CPU nor a wait of the opening thread. */
struct value section_unclassified(const struct section_sum *s, bool self);

/* Seconds of the shortest, the median and the longest execution, by section_spread_name; NULL after
 * the last. Unknown if some executions lack them. The median is within 9.1 % (crema_wall_bucket),
 * exact for up to two, below 1024 ns within 0.6 us, unknown above 73 minutes. */
const char *section_spread_name(size_t i);
struct value section_spread(const struct section_sum *s, size_t i);

/* A value of row[] in seconds instead of nanoseconds. */
struct value section_cell(const struct section_sum *s, size_t i);

/* The numbers of a gauge by gauge_number_names; unknown if none was reported. */
extern const char *const gauge_number_names[CREMA_GAUGE_NUMBERS];
void gauge_values(const struct crema_stat *s, struct value v[CREMA_GAUGE_NUMBERS]);
bool gauge_is_memory(const struct gauge_sum *g);
void sections_json(const struct sections *s, struct json *j);
void sections_table(const struct sections *s, struct sink *out, bool colour);

#endif
