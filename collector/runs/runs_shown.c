/* SPDX-License-Identifier: BSD-3-Clause */
/* runs_shown.c - what people call the kinds of coffea's own tasks. */
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

/* DaskExecutor sends it by one lambda before the first chunk; a run with another one is the user's.
 */
static bool is_scatter(const struct run *r, const char *prefix)
{
	const struct attempt *a, *found = NULL;
	bool chunks = false;
	size_t i;

	for (i = 0; i < r->attempts.n; i++) { /* by begin */
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

const char *run_prefix_shown(const struct run *r, const char *prefix)
{
	if (prefix && !strcmp(prefix, "automatic_retries") && is_preprocessing(r, prefix))
		return "preprocess";
	if (prefix && !strcmp(prefix, "lambda") && is_scatter(r, prefix))
		return "send processor";
	return prefix;
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
