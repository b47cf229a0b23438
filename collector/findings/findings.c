/* SPDX-License-Identifier: BSD-3-Clause */
/* findings.c - makes all checks of the table and sorts what they found. */
#include "collector/findings/findings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/findings/check.h"

static const struct check checks[] = {
#define FINDING(id, severity, first, second, looks_at, when, advice)                               \
	{#id, FINDING_##severity, first, second, advice, finding_##id},
#include "findings.def"
#undef FINDING
};

#define CHECKS (sizeof(checks) / sizeof(*checks))

const char *finding_severity_name(enum finding_severity severity)
{
	static const char *const names[FINDING_SEVERITIES] = {"high", "warning", "note"};

	return names[severity];
}

static int take(struct findings *out, const struct remark *d, enum verdict verdict)
{
	struct finding_gap *gap;
	struct finding *f;
	const char **idle;

	if (verdict == CHECK_IDLE) {
		idle = array_grow(&out->idle_ids, &out->idle, &out->idle_cap, sizeof(*idle));
		if (!idle)
			return -ENOMEM;
		*idle = d->check->id;
	} else if (verdict == CHECK_UNKNOWN) {
		gap = array_grow(&out->gaps, &out->gap_count, &out->gap_cap, sizeof(*gap));
		if (!gap)
			return -ENOMEM;
		*gap = (struct finding_gap){d->check->id, d->unknown};
	} else {
		out->made++;
	}
	if (verdict != CHECK_FOUND)
		return 0;
	f = ARRAY_NEW(out);
	if (!f)
		return -ENOMEM;
	*f = d->f;
	out->count[f->severity]++;
	return 0;
}

static int by_severity(const void *pa, const void *pb)
{
	const struct finding *a = pa, *b = pb;

	if (a->severity != b->severity)
		return a->severity < b->severity ? -1 : 1;
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return strcmp(a->id, b->id);
}

int findings_collect(const struct report *r, struct findings *out)
{
	enum verdict verdict;
	struct remark d;
	size_t i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < CHECKS; i++) {
		memset(&d, 0, sizeof(d));
		d.check = &checks[i];
		d.arena = &out->arena;
		d.f.id = checks[i].id;
		d.f.severity = checks[i].severity;
		d.f.advice = checks[i].advice;
		verdict = checks[i].make(r, &d);
		out->checks++;
		if (d.no_memory || take(out, &d, verdict)) {
			findings_release(out);
			return -ENOMEM;
		}
	}
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_severity);
	return 0;
}

void findings_release(struct findings *f)
{
	free(f->v);
	free(f->gaps);
	free(f->idle_ids);
	arena_release(&f->arena);
	memset(f, 0, sizeof(*f));
}
