/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wall.h - divides the wall time of an analysis into parts (contract/wall_parts.def), from its
 * client's record and the run's tasks.
 *
 * The record (python/crema/client.py) has seconds by part, and the times of waits. A wait is cut at
 * six times of the run: its first worker, its first task, the end of ramp-up, the beginning of the
 * tail, the last task, the last merge. What the client does while tasks run is the client's part.
 * A wait that ended before the first task, or began after the last one and after another graph was
 * sent, is an "other" wait.
 *
 * Parts are disjoint: known parts + rest = wall. A part is unknown if the client could not measure
 * it, or, for waits, if the offset of the client's clock to the collector's is unknown. Its seconds
 * are in the rest.
 */
#ifndef CREMA_COLLECTOR_REPORT_WALL_H
#define CREMA_COLLECTOR_REPORT_WALL_H

#include <jansson.h>

#include "collector/emit/emit_json.h"
#include "collector/metrics/metrics.h"

enum wall_part {
#define WALL_PART(id, ...) WALL_##id,
#include "wall_parts.def"
	WALL_PARTS
};

struct wall_part_name {
	const char *id, *words;
	char mark;
	const char *help;
};
extern const struct wall_part_name wall_parts[WALL_PARTS];

#define WALL_LINE_BYTES 512

struct wall {
	bool read;
	bool ended; /* the record is complete; else the client was killed, or still runs */
	double begin, seconds;	       /* UTC by the client's clock; of all parts */
	struct value part[WALL_PARTS]; /* seconds */
	double rest;
	enum wall_part largest;	      /* of the known ones */
	char unseen[WALL_LINE_BYTES]; /* why parts are unknown; "": none is */
	char line[WALL_LINE_BYTES];   /* what is wrong with the file; "": nothing */
	json_t *code;		      /* code_names.h; NULL: none */
};

/* 0, or -errno with the line set. */
int wall_read(struct wall *w, const char *path, const struct facts *f);
/* Looks in DIR/clients, among the records of `crema run`, for that of the client that submitted the
 * run: whether there is one. */
bool wall_find(struct wall *w, const char *dir, const struct facts *f);
/* The same from a record in memory; false: not a record. `own`: only if it has a key of the run. */
bool wall_take(struct wall *w, const char *text, size_t n, const struct facts *f, bool own);
void wall_release(struct wall *w);

/* Whether the largest part is worth a line on the first screen. */
bool wall_matters(const struct wall *w);
void wall_json(const struct wall *w, struct json *j, const char *name);

#endif
