/* SPDX-License-Identifier: BSD-3-Clause */
/* digests.c - sums of Dask's fine metrics over the run's spans. */
#include "collector/metrics/metrics.h"

#include <errno.h>
#include <string.h>

/* The prefix alone is not enough: coffea may use one for metadata and for chunks, in other
 * spans. */
bool prefix_is_processor(const struct facts *f, const char *span, const char *prefix)
{
	size_t i;

	for (i = 0; i < f->processors.n; i++) {
		if (f->processors.v[i].prefix == prefix && f->processors.v[i].span == span)
			return true;
	}
	return false;
}

int prefix_add(struct facts *f, const struct attempt *a)
{
	struct prefix *p;

	const char *span = span_part_span(f->run->model, a->span);

	if (!a->prefix || prefix_is_processor(f, span, a->prefix))
		return 0;
	p = ARRAY_NEW(&f->processors);
	if (!p)
		return -ENOMEM;
	*p = (struct prefix){span, a->prefix};
	return 0;
}

static bool matches(const char *have, const char *want)
{
	return !want || (have && !strcmp(have, want));
}

/* processor: 1 only its prefixes, 0 only the others, -1 all */
struct value digests_sum(const struct facts *f, const char *activity, const char *unit,
			 int processor)
{
	const struct model *m = f->run->model;
	const struct digest *d;
	enum run_digest whose;
	double sum = 0;
	size_t i, k;

	if (!f->dask)
		return value_null();
	for (i = 0; i < m->workers.n; i++) {
		for (k = 0; k < m->workers.v[i]->digests.n; k++) {
			d = &m->workers.v[i]->digests.v[k];
			if (!matches(d->activity, activity) || !matches(d->unit, unit))
				continue;
			whose = run_digest(f->run, d->span, d->prefix);
			if (whose == DIGEST_OTHER)
				continue;
			if (processor >= 0 &&
			    prefix_is_processor(f, d->span, d->prefix) != (processor == 1))
				continue;
			if (whose == DIGEST_SHARED)
				return value_null();
			sum += d->value;
		}
	}
	return value_real(sum);
}
