/* SPDX-License-Identifier: BSD-3-Clause */
/* model_read.c - reads all frame files of state directories into the model. */
#include "collector/model/model.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/model/dropped.h"
#include "collector/model/footer.h"
#include "common/dirs.h"
#include "common/framefile.h"

#define READ_TRIES 10 /* segments are dropped every few seconds at most */

/* From its footer if that suffices: as footer_feed(). */
static int read_footer(struct model *m, const char *footers, const char *path)
{
	const struct selection *s = m->selection;

	if (!s || s->footers_off || (s->pass != SELECTION_SURVEY && s->pass != SELECTION_RUNS) ||
	    (s->pass == SELECTION_RUNS && s->all))
		return 0;
	return footer_feed(m, footers, path, strrchr(path, '/') + 1);
}

/* The path within its directory; with several directories, the whole path. */
static const char *name_shown(struct model *m, const char *path, const char *name)
{
	const char *shown = m->several ? path : name;

	return model_text(m, (struct text){shown, strlen(shown)});
}

/* footers: where its footer may be; NULL: it has none. */
static int read_file(struct model *m, const char *path, const char *name, const char *footers)
{
	struct framefile_stats stats;
	struct torn_file *t;
	int rc;

	memset(&stats, 0, sizeof(stats));
	if (m->selection && selection_file(m->selection, path, m->segment))
		return -ENOMEM;
	rc = footers ? read_footer(m, footers, path) : 0;
	if (rc) {
		m->files_read += rc > 0;
		return rc > 0 ? 0 : rc;
	}
	rc = framefile_read(path, model_feed, m, &stats);
	if (m->selection)
		selection_frames(m->selection, stats.frames);
	if (m->error || rc == -ENOMEM) /* this is not about the file */
		return m->error ? m->error : rc;
	if (rc == -ENOENT)
		return -ESTALE; /* the collector or an agent removed it meanwhile */
	if (!rc)
		m->files_read++;
	if (!rc && !stats.bytes_skipped && !stats.truncated && !stats.no_header && !stats.newer)
		return 0;
	t = ARRAY_NEW(&m->torn);
	if (!t)
		return -ENOMEM;
	t->name = name_shown(m, path, name);
	t->bytes_skipped = stats.bytes_skipped;
	t->truncated = stats.truncated;
	t->no_header = stats.no_header;
	t->newer = stats.newer;
	t->error = rc;
	return m->error;
}

/*
 * Numbers segments as they are read. Those below the limit in the file of dropped runs are gone,
 * whether or not their files are there.
 */
static bool begin_segment(struct model *m, const char *path, const char *name)
{
	struct segment *s;
	struct stat st;

	if (!strcmp(name, DROPPED_FILE))
		return false; /* it was read first */
	s = ARRAY_NEW(&m->segments);
	if (!s) {
		m->error = -ENOMEM;
		return false;
	}
	s->created_ns = framefile_created_ns(name);
	s->bytes = stat(path, &st) ? 0 : (uint64_t)st.st_size;
	if (s->created_ns < m->below_ns) {
		m->segments.n--;
		return false;
	}
	m->segment = m->segments.n < UINT16_MAX ? (uint16_t)(m->segments.n - 1) : UINT16_MAX - 1;
	return true;
}

/* Read after the folder was listed: segments that it records as gone may be in the list, but
 * no others. */
static int read_dropped(struct model *m, const char *folder)
{
	char path[PATH_MAX];
	int rc = dirs_join(path, sizeof(path), folder, DROPPED_FILE);

	if (!rc)
		rc = read_file(m, path, "journal/" DROPPED_FILE, NULL);
	if (!rc)
		m->files_read--; /* it holds no run */
	return rc == -ESTALE ? 0 : rc;
}

static int read_folder(struct model *m, const char *dir, const char *sub)
{
	bool journal = !strcmp(sub, "journal");
	char folder[PATH_MAX], path[PATH_MAX], name[PATH_MAX], footers[PATH_MAX];
	char **names = NULL;
	int n, i, rc = 0;

	if (dirs_join(folder, sizeof(folder), dir, sub) ||
	    dirs_join(footers, sizeof(footers), dir, FOOTER_FOLDER))
		return -ENAMETOOLONG;
	n = framefile_list(folder, &names);
	if (n < 0)
		return n;
	if (journal)
		rc = read_dropped(m, folder);
	for (i = 0; i < n && !rc; i++) {
		if (dirs_join(path, sizeof(path), folder, names[i]) ||
		    dirs_join(name, sizeof(name), sub, names[i]) ||
		    (journal && !begin_segment(m, path, names[i])))
			continue;
		rc = read_file(m, path, name, journal ? footers : NULL);
		if (rc == -ESTALE && !journal)
			rc = 0; /* an agent's file, acknowledged meanwhile: the journal has it */
	}
	free(names);
	return rc ? rc : m->error;
}

static int read_all(struct model *m, const char *dir)
{
	static const char *const subs[] = {"journal", "spool"};
	size_t i;
	int rc;

	m->dir = dir;
	m->below_ns = 0;
	rc = read_folder(m, dir, ".");
	if (rc)
		return rc;
	for (i = 0; i < sizeof(subs) / sizeof(*subs); i++) {
		rc = read_folder(m, dir, subs[i]);
		if (rc && ((rc != -ENOENT && rc != -ENOTDIR) || (m->pass_over && !i)))
			return rc;
	}
	return 0;
}

/* One of several directories that could not be read: 0 if the others are still to be read. */
static int pass_over(struct model *m, int rc)
{
	struct torn_file *t;

	if (!m->pass_over || !m->several || m->error || rc == -ENOMEM || rc == -ESTALE)
		return rc;
	t = ARRAY_NEW(&m->torn);
	if (!t)
		return -ENOMEM;
	t->name = m->dir;
	t->journal = true;
	t->error = rc;
	m->missing++;
	return 0;
}

static int read_dirs(struct model *m, const char *dir, const char *const *more)
{
	size_t dirs;
	int rc = 0, failed = 0;

	m->several = more && *more;
	for (dirs = 0; dir && !rc; dirs++) {
		rc = read_all(m, dir);
		failed = rc ? rc : failed;
		rc = rc ? pass_over(m, rc) : 0;
		dir = more ? *more++ : NULL;
	}
	rc = !rc && m->missing == dirs ? failed : rc;
	m->segment = 0;
	return rc ? rc : (int)(m->files_read > INT_MAX ? INT_MAX : m->files_read);
}

int model_read_dirs(struct model *m, const char *dir, const char *const *more)
{
	struct selection *selection = m->selection;
	bool over = m->pass_over;
	int rc, tries = READ_TRIES;

	while ((rc = read_dirs(m, dir, more)) == -ESTALE && --tries) {
		model_release(m);
		model_init(m);
		m->selection = selection;
		m->pass_over = over;
		if (selection)
			selection_restart(selection);
	}
	return rc;
}

int model_read_dir(struct model *m, const char *dir)
{
	return model_read_dirs(m, dir, NULL);
}
