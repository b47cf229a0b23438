/* SPDX-License-Identifier: BSD-3-Clause */
/* runs_shown.c - the displayed names of coffea's own kinds of tasks. */
#include <stdio.h>
#include <string.h>

#include "collector/runs/runs.h"

/* Whether all tasks of this prefix are coffea's preprocessing. */
static bool is_preprocessing(const struct run *r, const char *prefix)
{
	size_t i, n = 0;

	for (i = 0; i < r->attempts.n; i++) {
		if (r->attempts.v[i]->prefix != prefix)
			continue;
		if (!(r->attempts.v[i]->flags & CREMA_TASK_PREPROCESSING))
			return false;
		n++;
	}
	return n > 0;
}

/* DaskExecutor sends it by one lambda before the first chunk; further lambdas are the user's. */
static bool is_scatter(const struct run *r, const char *prefix)
{
	const struct attempt *a, *found = NULL;
	bool chunks = false;
	size_t i;

	for (i = 0; i < r->attempts.n; i++) { /* sorted by begin */
		a = r->attempts.v[i];
		if (a->prefix == prefix) {
			if (chunks ||
			    (found && (!a->key || !found->key || strcmp(a->key, found->key))))
				return false;
			found = a;
		}
		chunks = chunks || attempt_is_chunk(a);
	}
	return found && chunks;
}

/* By Dask's names. */
static const struct {
	const char *prefix, *shown;
	bool (*is_coffeas)(const struct run *r, const char *prefix);
} own_tasks[] = {
	{"automatic_retries", "preprocess", is_preprocessing},
	{"lambda", "send processor", is_scatter},
};
#define OWN_TASKS (sizeof(own_tasks) / sizeof(own_tasks[0]))

const char *run_prefix_shown(const struct run *r, const char *prefix)
{
	size_t k;

	for (k = 0; prefix && k < OWN_TASKS; k++) {
		if (!strcmp(prefix, own_tasks[k].prefix))
			return own_tasks[k].is_coffeas(r, prefix) ? own_tasks[k].shown : prefix;
	}
	return prefix;
}

/* The run's interned text of that name; NULL: it has none. */
static const char *prefix_of(const struct run *r, const char *name)
{
	size_t i;

	for (i = 0; i < r->attempts.n; i++) {
		if (r->attempts.v[i]->prefix && !strcmp(r->attempts.v[i]->prefix, name))
			return r->attempts.v[i]->prefix;
	}
	return NULL;
}

void run_prefixes_shown(const struct run *r,
			void (*put)(void *arg, const char *prefix, const char *shown), void *arg)
{
	const char *prefix, *shown;
	size_t k;

	for (k = 0; k < OWN_TASKS; k++) {
		prefix = prefix_of(r, own_tasks[k].prefix);
		shown = run_prefix_shown(r, prefix);
		if (shown != prefix)
			put(arg, prefix, shown);
	}
}

const char *run_key_shown(const struct run *r, const struct attempt *a, char out[KEY_SHOWN_BYTES])
{
	const char *shown = run_prefix_shown(r, a->prefix);
	size_t n = a->prefix ? strlen(a->prefix) : 0;

	if (shown == a->prefix || !a->key || strncmp(a->key, a->prefix, n) != 0)
		return a->key;
	snprintf(out, KEY_SHOWN_BYTES, "%s%s", shown, a->key + n);
	return out;
}
