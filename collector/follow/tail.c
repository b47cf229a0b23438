/* SPDX-License-Identifier: BSD-3-Clause */
/* tail.c - see tail.h. */
#include "collector/follow/tail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/dirs.h"

int tail_init(struct tail *t, const char *dir)
{
	memset(t, 0, sizeof(*t));
	return dirs_join(t->folder, sizeof(t->folder), dir, "journal") ? -ENAMETOOLONG : 0;
}

int64_t tail_find(const struct tail *t, uint64_t after_ns, char path[PATH_MAX])
{
	char **names = NULL;
	uint64_t found = 0;
	int i, n = framefile_list(t->folder, &names);

	for (i = 0; i < n && !found; i++) {
		if (framefile_created_ns(names[i]) > after_ns &&
		    !dirs_join(path, PATH_MAX, t->folder, names[i]))
			found = framefile_created_ns(names[i]);
	}
	free(names);
	return n < 0 ? n : (int64_t)found;
}

void tail_close(struct tail *t)
{
	if (!t->segment_ns)
		return;
	t->bytes = tail_bytes(t);
	t->bytes_skipped = tail_skipped(t);
	t->newer = tail_newer(t);
	framefile_reader_close(&t->reader);
	t->segment_ns = 0;
}

/* Opens that segment; 0: also if it was removed meanwhile, and its successor is next. */
static int step(struct tail *t, uint64_t ns, const char *path)
{
	struct framefile_reader reader;
	int rc = framefile_open(&reader, path);

	if (rc && rc != -ENOENT)
		return rc;
	tail_close(t);
	t->done_ns = ns;
	t->lost = t->lost || rc || (t->next_ns && t->next_ns != ns);
	t->next_ns = 0;
	if (rc)
		return 0;
	t->reader = reader;
	t->segment_ns = ns;
	return 0;
}

int tail_next(struct tail *t, struct frame *frame)
{
	char path[PATH_MAX];
	int64_t next;
	int rc;

	for (;;) {
		rc = t->segment_ns ? framefile_next(&t->reader, frame) : 0;
		if (rc)
			return rc;
		next = tail_find(t, t->done_ns, path);
		if (next <= 0)
			return (int)next;
		if (t->segment_ns && !t->next_ns) {
			t->next_ns = (uint64_t)next;
			continue;
		}
		rc = step(t, (uint64_t)next, path);
		if (rc)
			return rc;
	}
}

void tail_look(struct tail *t)
{
	char path[PATH_MAX];
	int64_t next = t->segment_ns && !t->next_ns ? tail_find(t, t->done_ns, path) : 0;

	if (next > 0)
		t->next_ns = (uint64_t)next;
}

uint64_t tail_bytes(const struct tail *t)
{
	return t->bytes + (t->segment_ns ? t->reader.stats.bytes : 0);
}

uint64_t tail_skipped(const struct tail *t)
{
	return t->bytes_skipped + (t->segment_ns ? t->reader.stats.bytes_skipped : 0);
}

bool tail_newer(const struct tail *t)
{
	return t->newer || (t->segment_ns && t->reader.stats.newer);
}
