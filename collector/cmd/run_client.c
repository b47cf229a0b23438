/* SPDX-License-Identifier: BSD-3-Clause */
/* run_client.c - see run_client.h. */
#include "collector/cmd/run_client.h"

#include <dirent.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/dirs.h"

static int is_record(const struct dirent *e)
{
	return e->d_name[0] >= '0' && e->d_name[0] <= '9';
}

/* Names begin with the time: the first are the oldest. */
static void drop_oldest(const char *folder)
{
	struct dirent **found;
	char path[PATH_MAX];
	int i, n = scandir(folder, &found, is_record, alphasort);

	for (i = 0; i < n; i++) {
		if (i + RUN_CLIENTS <= n &&
		    !dirs_join(path, sizeof(path), folder, found[i]->d_name))
			unlink(path);
		free(found[i]);
	}
	if (n >= 0)
		free(found);
}

static int folder_of(const char *dir, char *state, char *folder)
{
	if (dirs_state(state, PATH_MAX, dir) || dirs_join(folder, PATH_MAX, state, "clients") ||
	    folder[0] != '/')
		return -1;
	return 0;
}

void run_client_set(const char *dir, uint64_t begin_mono_ns)
{
	double begun =
		(double)clock_real_ns() / 1e9 - (double)(clock_mono_ns() - begin_mono_ns) / 1e9;
	char state[PATH_MAX], folder[PATH_MAX], value[PATH_MAX + 80];

	unsetenv("CREMA_CLIENT");
	if (folder_of(dir, state, folder) || dirs_make_own(state) || dirs_make_own(folder))
		return;
	drop_oldest(folder);
	snprintf(value, sizeof(value), "%d %llu %s/%.3f-%d.json", getpid(),
		 (unsigned long long)begin_mono_ns, folder, begun, getpid());
	setenv("CREMA_CLIENT", value, 1);
}

bool run_client_waited(const char *dir, pid_t pid)
{
	char state[PATH_MAX], folder[PATH_MAX], path[PATH_MAX], end[32];
	struct dirent **found;
	bool waited = false;
	int i, n;

	n = folder_of(dir, state, folder) ? -1 : scandir(folder, &found, is_record, alphasort);
	snprintf(end, sizeof(end), "-%d.json", (int)pid);
	for (i = n - 1; i >= 0; i--) { /* the newest first: process ids repeat */
		const char *name = found[i]->d_name, *dash = strrchr(name, '-');
		json_t *record;

		if (dash && !strcmp(dash, end) && !dirs_join(path, sizeof(path), folder, name)) {
			record = json_load_file(path, 0, NULL);
			waited = json_array_size(json_object_get(record, "waits")) > 0;
			json_decref(record);
			break;
		}
	}
	for (i = 0; i < n; i++)
		free(found[i]);
	if (n >= 0)
		free(found);
	return waited;
}
