/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_stacks.h - long waits of tasks, summed by call site.
 *
 * A site is a native and a Python call stack in tasks of one prefix and span that waited for one
 * thing. Each record counts once, by its worker and number. Sites beyond MODEL_SITES are added to
 * `sites_cut`.
 */
#ifndef CREMA_COLLECTOR_MODEL_MODEL_STACKS_H
#define CREMA_COLLECTOR_MODEL_MODEL_STACKS_H

#include <stdint.h>

#include "collector/model/model_lines.h"
#include "common/table.h"
#include "ids.h"

#define MODEL_SITES 16384u
#define MODEL_FRAMES 64u

struct site_frame {
	uint64_t module; /* 0: in no file */
	uint64_t place;	 /* in the module's file; without a module, the address */
};

struct waits {
	uint64_t calls, ns, longest_ns;
};

/* Who held the interpreter lock, or the mutex, during a wait, in `samples` of `of` samples of it.
 */
struct site_holder {
	const struct line_list *python; /* NULL: unknown */
	uint64_t samples, of;
};

struct site {
	const char *span, *prefix;
	const char *file, *peer, *on; /* what was waited for, if known */
	enum crema_time_id wait;
	uint32_t depth;
	const struct site_frame *frame; /* innermost first */
	const struct line_list *python; /* NULL: unknown */
	bool python_cut;		/* its outermost places are missing */
	struct waits waits;
	struct site_holder holder; /* of the longest wait */
};

struct site_module {
	uint64_t id;
	const char *path, *build_id; /* NULL: unknown */
};

/* What the workers' own totals report about long waits. */
struct blocked_totals {
	bool known;			 /* a threshold was set */
	uint64_t threshold_ns, recorded; /* recorded: those that fit into the worker's table */
	uint64_t calls[CREMA_TIMES], ns[CREMA_TIMES];
};

struct model;
struct worker;
int model_feed_module(struct model *m, const msgpack_object *map);
int model_feed_stack(struct model *m, struct worker *w, const msgpack_object *map);
void model_take_blocked(struct blocked_totals *b, const msgpack_object *map);
const struct site_module *model_module(const struct model *m, uint64_t id);

#endif
