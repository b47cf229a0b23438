/* SPDX-License-Identifier: BSD-3-Clause */
/* check_memory.c - memory of the workers: limits, growth, spilling. */
#include "collector/findings/check.h"

enum verdict finding_memory_limit(const struct report *r, struct draft *d)
{
	struct value most = metric_max_memory_utilization_percent(r->facts);
	const struct worker_track *t, *worst = NULL;
	double share, highest = -1;
	bool known, limited = false;
	size_t i, k, above = 0;

	for (i = 0; i < r->facts->tracking->n; i++) {
		t = &r->facts->tracking->v[i];
		limited |= t->memory_limit.type != VALUE_NULL;
		for (k = 0, share = -1; k < t->memory.n; k++)
			share = t->memory.v[k].value > share ? t->memory.v[k].value : share;
		share = value_number(value_ratio(value_real(share), t->memory_limit, 100), &known);
		above += known && share > d->check->first;
		if (known && share > highest)
			worst = t, highest = share;
	}
	if (!limited)
		return CHECK_IDLE;
	value_number(most, &known);
	if (!known || !worst)
		return draft_unknown(d, "max_memory_utilization_percent");
	if (!(highest > d->check->first))
		return CHECK_QUIET;
	draft_see(d, "max_memory_utilization_percent", value_real(highest), "%");
	draft_see(d, "memory_limit_bytes", worst->memory_limit, "bytes");
	draft_see(d, "worker", value_text(worst->worker->label), "");
	draft_see(d, "workers_above", value_uint(above), "workers");
	draft_say(d, "%zu of %zu workers came above %s of their memory limit; %s reached %s of %s",
		  above, r->facts->tracking->n, draft_percent(d, d->check->first),
		  draft_name(d, worst->worker->label), draft_percent(d, highest),
		  draft_human(d, worst->memory_limit, AS_BYTES));
	return draft_found(d, highest / 100);
}
