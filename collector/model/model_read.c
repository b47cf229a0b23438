/* SPDX-License-Identifier: BSD-3-Clause */
/* model_read.c - all frame files of a state directory into the model. */
#include "collector/model/model.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/dirs.h"
#include "common/framefile.h"

static int read_file(struct model *m, const char *path, const char *name)
{
	struct framefile_stats stats;
	struct torn_file *t;
	int rc;

	memset(&stats, 0, sizeof(stats));
	rc = framefile_read(path, model_feed, m, &stats);
	if (m->error)
		return m->error;
	if (rc == -ENOENT)
		return 0; /* the collector or an agent removed it in the meantime */
	if (!rc)
		m->files_read++;
	if (!rc && !stats.bytes_skipped && !stats.truncated && !stats.no_header && !stats.newer)
		return 0;
	t = ARRAY_NEW(&m->torn);
	if (!t)
		return -ENOMEM;
	t->name = model_text(m, (struct text){name, strlen(name)});
	t->bytes_skipped = stats.bytes_skipped;
	t->truncated = stats.truncated;
	t->no_header = stats.no_header;
	t->newer = stats.newer;
	t->error = rc;
	return m->error;
}

static int read_folder(struct model *m, const char *dir, const char *sub)
{
	char folder[PATH_MAX], path[PATH_MAX], name[PATH_MAX];
	char **names = NULL;
	int n, i, rc = 0;

	if (dirs_join(folder, sizeof(folder), dir, sub))
		return -ENAMETOOLONG;
	n = framefile_list(folder, &names);
	if (n < 0)
		return n;
	for (i = 0; i < n && !rc; i++) {
		if (dirs_join(path, sizeof(path), folder, names[i]) ||
		    dirs_join(name, sizeof(name), sub, names[i]))
			continue;
		rc = read_file(m, path, name);
	}
	free(names);
	return rc;
}

int model_read_dir(struct model *m, const char *dir)
{
	static const char *const subs[] = {"journal", "spool"};
	size_t i;
	int rc;

	rc = read_folder(m, dir, ".");
	if (rc)
		return rc;
	for (i = 0; i < sizeof(subs) / sizeof(*subs); i++) {
		rc = read_folder(m, dir, subs[i]);
		if (rc && rc != -ENOENT && rc != -ENOTDIR)
			return rc;
	}
	return (int)(m->files_read > INT_MAX ? INT_MAX : m->files_read);
}
